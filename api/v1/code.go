// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"time"
)

// RunCode asks to run one cell of code.
type RunCode struct {
	Code      string  `json:"code" jsonschema:"at most 1 MiB"`
	Language  *string `json:"language,omitempty" jsonschema:"python (the default), javascript, typescript or bash; with context_id it may be left out"`
	ContextID *string `json:"context_id,omitempty" jsonschema:"the context to run in; without one the code runs in the sandbox's own context of its language, which is made when first used"`
	Stateless *bool   `json:"stateless,omitempty" jsonschema:"run in a context that lives for this code alone"`

	Cwd    *string           `json:"cwd,omitempty" jsonschema:"with stateless: absolute, or relative to /workspace"`
	User   *string           `json:"user,omitempty" jsonschema:"with stateless: an account of the sandbox, by name or number; left out: its own user"`
	AsUser *string           `json:"as_user,omitempty" jsonschema:"the same as user"`
	Env    map[string]string `json:"env,omitzero" jsonschema:"environment variables, for this code only"`

	TimeoutSeconds *float64 `json:"timeout_seconds,omitempty" jsonschema:"then it is interrupted, and its context ended if it does not heed that: more than 0, at most 86400; default 300"`
	Stream         *bool    `json:"stream,omitempty" jsonschema:"the same as Accept: text/event-stream"`

	MaxStdoutBytes *int64 `json:"max_stdout_bytes,omitempty" jsonschema:"how much of stdout to keep, 1 to 16777216; default 1048576. A stream has all of it"`
	MaxStderrBytes *int64 `json:"max_stderr_bytes,omitempty" jsonschema:"the same for stderr"`

	InterruptOnDisconnect *bool `json:"interrupt_on_disconnect,omitempty" jsonschema:"interrupt the code when the client goes away; else it goes on"`
}

// CodeStarted is sent as soon as streamed code is about to run.
type CodeStarted struct {
	ContextID string `json:"context_id,omitempty" jsonschema:"missing with stateless"`
	CellID    string `json:"cell_id" jsonschema:"the process_id of its event"`
	Language  string `json:"language"`
	Restarted string `json:"restarted,omitempty" jsonschema:"the context was started anew for this code, so that its variables are gone: why. Missing: it was not"`
}

// CodeOutcome is how code ended.
type CodeOutcome struct {
	CodeStarted
	Status         string `json:"status" jsonschema:"ok, error (see error), interrupted, timed_out or ended (its context has, see cause_detail)"`
	ExecutionCount int    `json:"execution_count" jsonschema:"which cell of the context's it was since that was started, from 1"`
	ContextEnded   bool   `json:"context_ended" jsonschema:"its variables are gone; the context's next code starts it anew"`

	Error       *CodeError `json:"error,omitempty"`
	ExitCode    int        `json:"exit_code" jsonschema:"of bash its exit code; else 0, 1 for an error, 130 for an interrupt; of a context that ended how it did"`
	Signal      string     `json:"signal,omitempty" jsonschema:"that ended the context"`
	Cause       string     `json:"cause,omitempty" jsonschema:"timeout, oom, pids, disk, killed, stopped or host"`
	CauseDetail string     `json:"cause_detail,omitempty" jsonschema:"the evidence, for people"`
	TimedOut    bool       `json:"timed_out" jsonschema:"whether cause is timeout"`
	DurationMS  int64      `json:"duration_ms"`

	StdoutBytes     int64 `json:"stdout_bytes" jsonschema:"what it wrote in all, kept or not"`
	StderrBytes     int64 `json:"stderr_bytes" jsonschema:"what it wrote in all, kept or not"`
	StdoutTruncated bool  `json:"stdout_truncated"`
	StderrTruncated bool  `json:"stderr_truncated"`
	ResultsDropped  int   `json:"results_dropped" jsonschema:"results beyond the first 100"`

	FilesChanged         []FileChange `json:"files_changed" jsonschema:"what changed in the workspace while it ran"`
	FilesChangedTotal    int          `json:"files_changed_total"`
	FilesChangedComplete bool         `json:"files_changed_complete" jsonschema:"whether no change can have been missed"`
}

// CodeResult is the outcome of code with its output.
type CodeResult struct {
	CodeOutcome
	Stdout       string      `json:"stdout" jsonschema:"what was kept of it, as text"`
	Stderr       string      `json:"stderr" jsonschema:"what was kept of it, as text"`
	StdoutBase64 string      `json:"stdout_base64,omitempty" jsonschema:"the exact bytes, only where stdout is not valid UTF-8"`
	StderrBase64 string      `json:"stderr_base64,omitempty" jsonschema:"the exact bytes, only where stderr is not valid UTF-8"`
	Results      []CodeValue `json:"results" jsonschema:"in their order"`
}

// CodeError is an exception.
type CodeError struct {
	Name      string   `json:"name"`
	Value     string   `json:"value"`
	Traceback []string `json:"traceback" jsonschema:"lines"`
}

// CodeValue is a value that code has shown, in one or more forms. HTML, SVG and similar forms are
// as dangerous as any untrusted page.
type CodeValue struct {
	Main       bool                       `json:"main" jsonschema:"the value of the last expression; else one that was displayed, or a figure"`
	Text       string                     `json:"text,omitempty"`
	HTML       string                     `json:"html,omitempty"`
	Markdown   string                     `json:"markdown,omitempty"`
	SVG        string                     `json:"svg,omitempty"`
	LaTeX      string                     `json:"latex,omitempty"`
	JavaScript string                     `json:"javascript,omitempty"`
	JSON       json.RawMessage            `json:"json,omitempty"`
	PNG        []byte                     `json:"png,omitempty" jsonschema:"in base64"`
	JPEG       []byte                     `json:"jpeg,omitempty" jsonschema:"in base64"`
	PDF        []byte                     `json:"pdf,omitempty" jsonschema:"in base64"`
	Chart      json.RawMessage            `json:"chart,omitempty" jsonschema:"what a figure of matplotlib shows: type (line, scatter, bar, pie, box_and_whisker, composite or unknown), title, elements; labels, units, ticks and scales of the axes; truncated where not all of it is told"`
	Data       json.RawMessage            `json:"data,omitempty" jsonschema:"the columns of a data frame of pandas or polars: lists of values by their names, at most 1000 rows, 100 columns and 20000 values"`
	DataCut    bool                       `json:"data_truncated,omitempty" jsonschema:"data is only a part"`
	At         *time.Time                 `json:"at,omitempty" jsonschema:"when the code showed it"`
	More       map[string]json.RawMessage `json:"more,omitempty" jsonschema:"forms of other mime types"`
	TextCut    bool                       `json:"text_truncated,omitempty" jsonschema:"text is only the first part"`
	Omitted    []string                   `json:"omitted,omitempty" jsonschema:"forms that were too large, or not what their type says"`
}

// StreamResult is the name of a server-sent event of streamed code, with a CodeValue. The
// others are StreamStart with CodeStarted, StreamStdout, StreamStderr, and at last StreamEnd with
// CodeOutcome, or StreamError.
const StreamResult = "result"

// CreateContext asks for a context.
type CreateContext struct {
	Language string            `json:"language" jsonschema:"python, javascript, typescript or bash"`
	Cwd      *string           `json:"cwd,omitempty" jsonschema:"absolute, or relative to /workspace; the default is /workspace, as root /root"`
	User     *string           `json:"user,omitempty" jsonschema:"an account of the sandbox, by name or number; left out: its own user"`
	AsUser   *string           `json:"as_user,omitempty" jsonschema:"the same as user"`
	Env      map[string]string `json:"env,omitzero" jsonschema:"environment variables on top of the sandbox's"`
}

// Context is where code runs: its variables outlive a cell.
type Context struct {
	ID         string    `json:"id"`
	Language   string    `json:"language"`
	Cwd        string    `json:"cwd" jsonschema:"where it was started"`
	User       string    `json:"user"`
	Default    bool      `json:"default" jsonschema:"code of its language that names no context runs in it"`
	Status     string    `json:"status" jsonschema:"idle, busy or ended: its variables are gone, and its next code starts it anew"`
	Ended      string    `json:"ended,omitempty" jsonschema:"why it ended"`
	Queued     int       `json:"queued" jsonschema:"how much code waits for its turn"`
	Executions int64     `json:"executions" jsonschema:"how much code ran in it since it was started"`
	Starts     int64     `json:"starts" jsonschema:"how often it was started"`
	ProcessID  string    `json:"process_id,omitempty" jsonschema:"the process that holds its variables"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
}

// ContextList is all contexts of a sandbox.
type ContextList struct {
	Items []Context `json:"items"`
}
