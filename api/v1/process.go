// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Process is one command that runs or ran in a sandbox.
type Process struct {
	ProcessID string    `json:"process_id"`
	Status    string    `json:"status" jsonschema:"running or exited"`
	Command   string    `json:"command,omitempty" jsonschema:"shell text, if it was given as such"`
	Argv      []string  `json:"argv,omitempty" jsonschema:"program and arguments, if it was given as such"`
	Cwd       string    `json:"cwd"`
	User      string    `json:"user"`
	PID       int       `json:"pid" jsonschema:"its number inside the sandbox"`
	StartedAt time.Time `json:"started_at"`

	EndedAt         *time.Time `json:"ended_at" jsonschema:"null while it runs"`
	ExitCode        *int       `json:"exit_code" jsonschema:"null while it runs"`
	Signal          string     `json:"signal,omitempty"`
	Cause           string     `json:"cause,omitempty"`
	CauseDetail     string     `json:"cause_detail,omitempty"`
	TimedOut        bool       `json:"timed_out"`
	DurationMS      int64      `json:"duration_ms"`
	StdoutBytes     int64      `json:"stdout_bytes"`
	StderrBytes     int64      `json:"stderr_bytes"`
	StdoutTruncated bool       `json:"stdout_truncated"`
	StderrTruncated bool       `json:"stderr_truncated"`
}

// ProcessList is all processes that a sandbox remembers.
type ProcessList struct {
	Items []Process `json:"items"`
}

// TerminalControl is a text message on a terminal's WebSocket; binary messages
// are the terminal's bytes, both ways. A client sends Resize and Signal; the
// server sends Exit or Error once, last, and closes.
type TerminalControl struct {
	Resize *TerminalSize `json:"resize,omitempty"`
	Signal *string       `json:"signal,omitempty" jsonschema:"a signal's name, such as SIGINT"`
	Exit   *TerminalExit `json:"exit,omitempty"`
	Error  *Problem      `json:"error,omitempty"`
}

// TerminalSize is a terminal's size in characters.
type TerminalSize struct {
	Cols uint16 `json:"cols" jsonschema:"1 to 1000"`
	Rows uint16 `json:"rows" jsonschema:"1 to 1000"`
}

// TerminalExit is how a terminal's command ended.
type TerminalExit struct {
	ExitCode    int    `json:"exit_code"`
	Signal      string `json:"signal,omitempty"`
	Cause       string `json:"cause,omitempty"`
	CauseDetail string `json:"cause_detail,omitempty"`
}
