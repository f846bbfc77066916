// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"time"
)

// Exec asks to run one command. Exactly one of Command and Argv is set.
type Exec struct {
	Command *string  `json:"command,omitempty" jsonschema:"shell text"`
	Argv    []string `json:"argv,omitempty" jsonschema:"a program and its arguments, run without a shell"`

	ImageCommand *bool `json:"image_command,omitempty" jsonschema:"true: run what the image says, its entry point with its command, or with argv in place of that; cwd is the image's working directory then, unless it is given. In a sandbox that is there, and not in a shell"`

	Cwd    *string           `json:"cwd,omitempty" jsonschema:"absolute, or relative to /workspace; the default is /workspace, as root /root"`
	Env    map[string]string `json:"env,omitzero" jsonschema:"environment variables on top of the sandbox's"`
	User   *string           `json:"user,omitempty" jsonschema:"an account of the sandbox, by name or number; left out: its own user"`
	AsUser *string           `json:"as_user,omitempty" jsonschema:"the same as user"`

	Stdin       *string `json:"stdin,omitempty" jsonschema:"text for its standard input, which then ends"`
	StdinBase64 *string `json:"stdin_base64,omitempty" jsonschema:"the same for any bytes, in base64"`
	StreamStdin *bool   `json:"stream_stdin,omitempty" jsonschema:"true: its standard input stays open, for POST …/processes/{pid}/stdin, until that ends it. It needs a caller who knows the process while it runs: an answer that is streamed, or wait_seconds"`

	Name   *string           `json:"name,omitempty" jsonschema:"what to call it by: 1 to 64 printable characters without /. No two processes of a sandbox that run have the same; name:NAME stands wherever a process_id does"`
	Labels map[string]string `json:"labels,omitzero" jsonschema:"at most 16, to find it by in lists"`

	MergeOutput *bool `json:"merge_output,omitempty" jsonschema:"true: stdout and stderr are one pipe, so that their order is the program's; all of it is stdout"`

	TimeoutSeconds *float64 `json:"timeout_seconds,omitempty" jsonschema:"then it is killed with all that it started: more than 0, at most 86400; default 300"`
	WaitSeconds    *float64 `json:"wait_seconds,omitempty" jsonschema:"how long to wait for its end, 0 to 86400; then the answer is 202 and it goes on. The default waits to the end"`

	MaxOutputBytes *int64 `json:"max_output_bytes,omitempty" jsonschema:"how much of each of stdout and stderr to keep, 1 to 16777216, or to 67108864 when streamed; default 1048576. The rest is counted and dropped"`
	MaxStdoutBytes *int64 `json:"max_stdout_bytes,omitempty" jsonschema:"the same for stdout alone"`
	MaxStderrBytes *int64 `json:"max_stderr_bytes,omitempty" jsonschema:"the same for stderr alone"`
}

// CreateExec asks to run one command in a new sandbox, or in the one that has the key.
type CreateExec struct {
	Exec
	Sandbox CreateSandbox `json:"sandbox,omitzero" jsonschema:"as for createSandbox; with a key the sandbox that has it is used, without one it is a new one"`
}

// ExecPlace says in which sandbox such a command ran.
type ExecPlace struct {
	SandboxID      string   `json:"sandbox_id"`
	SandboxCreated bool     `json:"sandbox_created" jsonschema:"whether it was made for the command; else it had the key"`
	SandboxDiffers []string `json:"sandbox_differs,omitempty" jsonschema:"of one that had the key: the fields of sandbox in which it is not what was asked for"`
}

// CreateExecOutcome is how such a command ended, or that it still runs.
type CreateExecOutcome struct {
	ExecPlace
	ExecOutcome
}

// CreateExecResult is the same with the command's output.
type CreateExecResult struct {
	ExecPlace
	ExecResult
}

// ExecOutcome is how a command ended, or that it still runs.
type ExecOutcome struct {
	ProcessID    string `json:"process_id"`
	Status       string `json:"status" jsonschema:"exited, or running when wait_seconds passed first"`
	ExitCode     *int   `json:"exit_code" jsonschema:"its exit code, or 128 and the signal's number; null while it runs"`
	Signal       string `json:"signal,omitempty" jsonschema:"the signal that ended it (SIGKILL)"`
	Cause        string `json:"cause,omitempty" jsonschema:"why it ended if not by itself: timeout, oom, pids, disk, killed, stopped or host"`
	CauseDetail  string `json:"cause_detail,omitempty" jsonschema:"the evidence for cause, for people"`
	SignaledBy   string `json:"signaled_by,omitempty" jsonschema:"who sent it the last signal that ends programs: the name of the token that signalled or killed it, or stopped its sandbox; system for a time limit, the memory limit and the clocks of the sandbox"`
	SignaledWith string `json:"signaled_with,omitempty" jsonschema:"which signal that was (SIGKILL). A program that caught it may have ended by itself"`
	TimedOut     bool   `json:"timed_out" jsonschema:"whether cause is timeout"`
	DurationMS   int64  `json:"duration_ms" jsonschema:"milliseconds from its start to its end"`

	StdoutBytes     int64 `json:"stdout_bytes" jsonschema:"what it wrote in all, kept or not"`
	StderrBytes     int64 `json:"stderr_bytes" jsonschema:"what it wrote in all, kept or not"`
	StdoutTruncated bool  `json:"stdout_truncated"`
	StderrTruncated bool  `json:"stderr_truncated"`

	FilesChanged         []FileChange `json:"files_changed" jsonschema:"what changed in the workspace while it ran"`
	FilesChangedTotal    int          `json:"files_changed_total" jsonschema:"how many there were, of which files_changed may hold fewer"`
	FilesChangedComplete bool         `json:"files_changed_complete" jsonschema:"whether no change can have been missed"`
	SnapshotID           string       `json:"snapshot_id,omitempty" jsonschema:"the checkpoint that was taken after it, where the sandbox takes them"`
}

// ExecResult is the outcome of a command with its output.
type ExecResult struct {
	ExecOutcome
	// Stdout and Stderr are always text, for reading: bytes that are not UTF-8
	// stand as U+FFFD in them, and then the exact bytes are in the field beside.
	Stdout       string `json:"stdout" jsonschema:"what was kept of it, as text"`
	Stderr       string `json:"stderr" jsonschema:"what was kept of it, as text"`
	StdoutBase64 string `json:"stdout_base64,omitempty" jsonschema:"the exact bytes, only where stdout is not valid UTF-8"`
	StderrBase64 string `json:"stderr_base64,omitempty" jsonschema:"the exact bytes, only where stderr is not valid UTF-8"`
}

// FileChange is one path that a command changed.
type FileChange struct {
	Path      string `json:"path" jsonschema:"relative to the workspace"`
	Escaped   bool   `json:"escaped,omitempty" jsonschema:"the name is not UTF-8: in path each byte that is not part of a character stands as \\xNN, and each backslash as two"`
	Action    string `json:"action" jsonschema:"created, modified or deleted"`
	SizeBytes int64  `json:"size_bytes" jsonschema:"after the command; 0 when deleted"`
}

// ExecStarted is sent as soon as a streamed command runs.
type ExecStarted struct {
	ProcessID string `json:"process_id"`
	SandboxID string `json:"sandbox_id,omitempty" jsonschema:"of a command that came with its sandbox"`
	After     int64  `json:"after,omitempty" jsonschema:"of a request that was sent again with Last-Event-ID: the output goes on behind this frame"`
}

// Names of the server-sent events of a streamed command. The ids of stdout and
// stderr are the numbers of their frames, which grow within the command.
const (
	StreamStart  = "start"  // data: ExecStarted; the first event
	StreamStdout = "stdout" // data: Output
	StreamStderr = "stderr" // data: Output
	StreamExit   = "exit"   // data: ExecOutcome; the last event
	StreamError  = "error"  // data: Problem; the last event
)

// FramesType is the media type of a streamed command's output as frames, which cost less than
// events. A frame is 4 bytes with the length of what follows, big endian; zero: it says only that
// the stream is alive. A first byte of 1 or 2 is output, as in a binary message of a process that
// is followed: see [ProcessControl]. A first byte of 0 is an event: a [FrameEvent] as JSON.
//
// With the parameter [AllOutput] the client gets all that the command writes: where it takes that
// slower than the command writes, the command waits, and what is kept is the end of the output.
const (
	FramesType = "application/vnd.sandpit.frames"
	AllOutput  = "output=all"
)

// FrameEvent is an event among frames. Its names and data are those of server-sent events.
type FrameEvent struct {
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

// Output is one frame of a streamed command's output.
type Output struct {
	Data       string    `json:"data" jsonschema:"text, for reading: bytes that are not UTF-8 stand as U+FFFD in it"`
	DataBase64 string    `json:"data_base64,omitempty" jsonschema:"the exact bytes, only where data is not valid UTF-8 (a character may be cut in two by the border of a frame). With Accept: text/event-stream;data=exact these are alone, and data is empty, where the bytes are no plain text"`
	At         time.Time `json:"at"`
}

// Headers of answers about commands.
const (
	// ProcessHeader names the process that an answer is about.
	ProcessHeader = "Sandpit-Process-Id"
	// SandboxHeader names the sandbox of a command that asked for one and has begun, whatever
	// becomes of the answer.
	SandboxHeader = "Sandpit-Sandbox-Id"
)
