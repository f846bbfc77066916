// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Process is one command that runs or ran in a sandbox.
type Process struct {
	ProcessID string            `json:"process_id"`
	Name      string            `json:"name,omitempty" jsonschema:"name:NAME stands wherever a process_id does"`
	Status    string            `json:"status" jsonschema:"running or exited"`
	Command   string            `json:"command,omitempty" jsonschema:"shell text, if it was given as such"`
	Argv      []string          `json:"argv,omitempty" jsonschema:"program and arguments, if it was given as such"`
	Cwd       string            `json:"cwd"`
	User      string            `json:"user"`
	Tty       bool              `json:"tty" jsonschema:"whether it runs at a terminal"`
	PID       int               `json:"pid" jsonschema:"its number inside the sandbox"`
	StartedAt time.Time         `json:"started_at"`
	Labels    map[string]string `json:"labels,omitempty"`
	LastSeq   int64             `json:"last_seq" jsonschema:"the number of its last frame of output so far: a cursor. 0 while its sandbox is not up, whose log tells it"`

	EndedAt         *time.Time `json:"ended_at" jsonschema:"null while it runs"`
	ExitCode        *int       `json:"exit_code" jsonschema:"null while it runs"`
	Signal          string     `json:"signal,omitempty"`
	Cause           string     `json:"cause,omitempty"`
	CauseDetail     string     `json:"cause_detail,omitempty"`
	SignaledBy      string     `json:"signaled_by,omitempty" jsonschema:"who sent it the last signal that ends programs: the name of the token that signalled or killed it, or stopped its sandbox; system for a time limit, the memory limit and the clocks of the sandbox"`
	SignaledWith    string     `json:"signaled_with,omitempty" jsonschema:"which signal that was (SIGKILL). A program that caught it may have ended by itself"`
	TimedOut        bool       `json:"timed_out"`
	DurationMS      int64      `json:"duration_ms"`
	StdoutBytes     int64      `json:"stdout_bytes"`
	StderrBytes     int64      `json:"stderr_bytes"`
	StdoutTruncated bool       `json:"stdout_truncated"`
	StderrTruncated bool       `json:"stderr_truncated"`
}

// ProcessList is one page of the processes that a sandbox remembers.
type ProcessList struct {
	Items      []Process `json:"items"`
	NextCursor *string   `json:"next_cursor" jsonschema:"of the next page; null at the end"`
}

// StartProcess asks to start a process without waiting for it. Exactly one of Command and Argv is
// set.
type StartProcess struct {
	Command *string  `json:"command,omitempty" jsonschema:"shell text"`
	Argv    []string `json:"argv,omitempty" jsonschema:"a program and its arguments, run without a shell"`

	ImageCommand *bool `json:"image_command,omitempty" jsonschema:"true: run what the image says, its entry point with its command, or with argv in place of that; cwd is the image's working directory then, unless it is given"`

	Cwd    *string           `json:"cwd,omitempty" jsonschema:"absolute, or relative to /workspace; the default is /workspace, as root /root"`
	Env    map[string]string `json:"env,omitzero" jsonschema:"environment variables on top of the sandbox's"`
	User   *string           `json:"user,omitempty" jsonschema:"an account of the sandbox, by name or number; left out: its own user"`
	AsUser *string           `json:"as_user,omitempty" jsonschema:"the same as user"`

	Stdin       *string `json:"stdin,omitempty" jsonschema:"text for its standard input, which then ends"`
	StdinBase64 *string `json:"stdin_base64,omitempty" jsonschema:"the same for any bytes, in base64"`
	StreamStdin *bool   `json:"stream_stdin,omitempty" jsonschema:"true: its standard input stays open, for POST …/stdin; the default is none"`

	Name   *string           `json:"name,omitempty" jsonschema:"what to call it by: 1 to 64 printable characters without /. No two processes of a sandbox that run have the same; name:NAME stands wherever a process_id does"`
	Labels map[string]string `json:"labels,omitzero" jsonschema:"at most 16, to find it by in lists"`

	MergeOutput *bool `json:"merge_output,omitempty" jsonschema:"true: stdout and stderr are one pipe, so that their order is the program's; all of it is stdout"`

	Tty  *bool   `json:"tty,omitempty" jsonschema:"true: run it at a terminal, whose input is streamed and whose output is all stdout"`
	Cols *int    `json:"cols,omitempty" jsonschema:"of the terminal: 1 to 1000; default 80"`
	Rows *int    `json:"rows,omitempty" jsonschema:"of the terminal: 1 to 1000; default 24"`
	Term *string `json:"term,omitempty" jsonschema:"the kind of terminal; default xterm-256color"`

	TimeoutSeconds *float64 `json:"timeout_seconds,omitempty" jsonschema:"then it is killed with all that it started: more than 0, at most 86400; the default is never"`

	MaxOutputBytes *int64 `json:"max_output_bytes,omitempty" jsonschema:"how much of each of stdout and stderr to keep, 1 to 67108864; default 16777216. The rest is counted and dropped"`
	MaxStdoutBytes *int64 `json:"max_stdout_bytes,omitempty" jsonschema:"the same for stdout alone"`
	MaxStderrBytes *int64 `json:"max_stderr_bytes,omitempty" jsonschema:"the same for stderr alone"`
}

// SignalProcess asks to send a signal.
type SignalProcess struct {
	Signal string `json:"signal" jsonschema:"a name (SIGTERM or TERM) or a number, 1 to 64"`
	Tree   *bool  `json:"tree,omitempty" jsonschema:"true: to all that the process started as well; the default is itself alone"`
}

// ResizeProcess asks for another size of a process's terminal.
type ResizeProcess struct {
	Cols int `json:"cols" jsonschema:"1 to 1000"`
	Rows int `json:"rows" jsonschema:"1 to 1000"`
}

// ProcessInput is how far a process has taken its standard input.
type ProcessInput struct {
	BytesTaken int   `json:"bytes_taken" jsonschema:"of what was sent"`
	TotalBytes int64 `json:"total_bytes" jsonschema:"of its whole input"`
	Closed     bool  `json:"closed" jsonschema:"whether its input is at its end"`
}

// Names of the server-sent events of a process that is followed, beside stdout and
// stderr, which are as those of a streamed command. Their ids are cursors.
const (
	StreamGap = "gap" // data: OutputGap
	StreamEnd = "end" // data: OutputEnd; the last event where follow is false and it runs
	// Of a process that has ended, exit is the last event; its data is a Process.
)

// OutputGap is output that was dropped. It stands where it is missing.
type OutputGap struct {
	Stream string `json:"stream,omitempty" jsonschema:"stdout or stderr; left out: of both"`
	Bytes  int64  `json:"bytes" jsonschema:"how many are missing; 0: that is not known"`
	Frames int64  `json:"frames,omitempty" jsonschema:"how many frames are missing, where what is missing had been in frames"`
	Why    string `json:"why"`
}

// OutputEnd is where the output of a process ends that goes on.
type OutputEnd struct {
	Cursor int64 `json:"cursor" jsonschema:"ask with it for what comes after"`
}

// ProcessControl is a text message on the WebSocket of a process that is followed.
// The server's binary messages are frames of output: a byte that is 1 for stdout or
// 2 for stderr, 8 bytes with the frame's number, 8 with its time as nanoseconds of
// Unix time, both big endian, and the bytes. The client's are standard input.
type ProcessControl struct {
	Resize     *TerminalSize `json:"resize,omitempty"`
	Signal     *string       `json:"signal,omitempty" jsonschema:"a signal's name, such as SIGINT"`
	CloseStdin bool          `json:"close_stdin,omitempty" jsonschema:"ends the standard input, behind what was sent"`

	Refused *Problem   `json:"refused,omitempty" jsonschema:"from the server: what the client asked for or sent could not be done; the following goes on"`
	Gap     *OutputGap `json:"gap,omitempty" jsonschema:"from the server"`
	Exit    *Process   `json:"exit,omitempty" jsonschema:"from the server, last: the process has ended"`
	End     *OutputEnd `json:"end,omitempty" jsonschema:"from the server, last: follow was false, and the process goes on"`
	Error   *Problem   `json:"error,omitempty" jsonschema:"from the server, last"`
}

// OutputHeader is the length of what stands before the bytes of a binary message.
const OutputHeader = 17

// TerminalControl is a text message on a terminal's WebSocket; binary messages
// are the terminal's bytes, both ways. A client sends Resize and Signal; the
// server sends Exit or Error once, last, and closes.
type TerminalControl struct {
	Resize *TerminalSize `json:"resize,omitempty"`
	Signal *string       `json:"signal,omitempty" jsonschema:"a signal's name, such as SIGINT"`
	Exit   *TerminalExit `json:"exit,omitempty"`
	Error  *Problem      `json:"error,omitempty"`

	Refused *Problem `json:"refused,omitempty" jsonschema:"from a terminal that stays: what the client asked for could not be done; the terminal goes on"`
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

	SignaledBy   string `json:"signaled_by,omitempty" jsonschema:"as of a process"`
	SignaledWith string `json:"signaled_with,omitempty"`
}
