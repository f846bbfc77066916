// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Event is one row of what happened to a sandbox. Fields that its type does not use are missing.
type Event struct {
	Seq    int64     `json:"seq" jsonschema:"grows by one per event of the whole server"`
	Type   string    `json:"type" jsonschema:"sandbox.created, exec, file.upload, …"`
	At     time.Time `json:"at"`
	Actor  string    `json:"actor" jsonschema:"the token's name, or system"`
	Via    string    `json:"via" jsonschema:"rest, mcp, console or system"`
	Detail string    `json:"detail,omitempty" jsonschema:"one line for people"`

	// Of a command, of a terminal and of code.
	ProcessID         string            `json:"process_id,omitempty" jsonschema:"of code: the cell's id"`
	Name              string            `json:"name,omitempty" jsonschema:"of a process that has one"`
	Labels            map[string]string `json:"labels,omitempty" jsonschema:"of a process that has some"`
	Language          string            `json:"language,omitempty" jsonschema:"of code"`
	ContextID         string            `json:"context_id,omitempty" jsonschema:"of code, and of a command in a shell: where it ran"`
	Command           string            `json:"command,omitempty" jsonschema:"at most 4096 bytes of it"`
	User              string            `json:"user,omitempty"`
	Cwd               string            `json:"cwd,omitempty"`
	Status            string            `json:"status,omitempty" jsonschema:"running or exited"`
	ExitCode          *int              `json:"exit_code,omitempty"`
	Signal            string            `json:"signal,omitempty"`
	Cause             string            `json:"cause,omitempty"`
	SignaledBy        string            `json:"signaled_by,omitempty" jsonschema:"of a command: who sent it the last signal that ends programs: the name of the token that signalled or killed it, or stopped its sandbox; system for a time limit, the memory limit and the clocks of the sandbox"`
	SignaledWith      string            `json:"signaled_with,omitempty" jsonschema:"which signal that was (SIGKILL). A program that caught it may have ended by itself"`
	DurationMS        *int64            `json:"duration_ms,omitempty"`
	StdoutBytes       *int64            `json:"stdout_bytes,omitempty"`
	StderrBytes       *int64            `json:"stderr_bytes,omitempty"`
	StdoutTruncated   bool              `json:"stdout_truncated,omitempty"`
	StderrTruncated   bool              `json:"stderr_truncated,omitempty"`
	FilesChanged      []FileChange      `json:"files_changed,omitempty"`
	FilesChangedTotal int               `json:"files_changed_total,omitempty"`

	// Of a file.
	Path string `json:"path,omitempty"`
	To   string `json:"to,omitempty" jsonschema:"of a move"`
	Size *int64 `json:"size_bytes,omitempty" jsonschema:"bytes that were moved"`
	OK   *bool  `json:"ok,omitempty" jsonschema:"whether it worked; detail says why not"`
}

// EventPage is one page of events, newest first unless asked otherwise.
type EventPage struct {
	Items      []Event `json:"items"`
	NextCursor *string `json:"next_cursor" jsonschema:"give it as cursor to go on; null at the end"`
}
