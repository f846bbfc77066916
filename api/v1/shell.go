// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Shell is a named bash of a sandbox. A command in it finds the state that the one before left:
// directory, variables, functions, background jobs.
type Shell struct {
	Name        string     `json:"name" jsonschema:"one of its kind in the sandbox"`
	ShellID     string     `json:"shell_id" jsonschema:"the context_id of its commands in the activity"`
	Status      string     `json:"status" jsonschema:"idle, busy, or ended: its next command begins another bash"`
	EndedReason string     `json:"ended_reason,omitempty" jsonschema:"why its bash is no more"`
	ProcessID   string     `json:"process_id" jsonschema:"of its bash; empty before the first command"`
	Cwd         string     `json:"cwd" jsonschema:"where it starts"`
	User        string     `json:"user"`
	CreatedAt   time.Time  `json:"created_at"`
	UsedAt      *time.Time `json:"used_at" jsonschema:"when its last command began or ended; null before the first"`
	Queued      int        `json:"queued" jsonschema:"commands that wait for their turn"`
}

// ShellList is the shells of a sandbox.
type ShellList struct {
	Items []Shell `json:"items"`
}

// CreateShell asks for a shell.
type CreateShell struct {
	Name   *string           `json:"name,omitempty" jsonschema:"1 to 64 printable characters without /, and neither . nor ..; the default is one that is made up"`
	Cwd    *string           `json:"cwd,omitempty" jsonschema:"where it starts: absolute, or relative to /workspace; the default is /workspace"`
	Env    map[string]string `json:"env,omitzero" jsonschema:"environment variables on top of the sandbox's"`
	User   *string           `json:"user,omitempty" jsonschema:"an account of the sandbox, by name or number; left out: its own user"`
	AsUser *string           `json:"as_user,omitempty" jsonschema:"the same as user"`
}

// ShellState is the state of the shell that a command's outcome reports.
type ShellState struct {
	Name      string `json:"name"`
	ShellID   string `json:"shell_id"`
	Restarted string `json:"restarted,omitempty" jsonschema:"why what the commands before had left behind is gone: their bash had ended, and this command began another"`
	Ended     bool   `json:"ended" jsonschema:"whether the command took the shell's bash with it (exit, set -e); exit_code is how that ended"`
}

// ShellExecOutcome is how a command in a shell ended, or that it still runs.
type ShellExecOutcome struct {
	ExecOutcome
	Shell ShellState `json:"shell"`
}

// ShellExecResult is the outcome of a command in a shell with its output.
type ShellExecResult struct {
	ExecResult
	Shell ShellState `json:"shell"`
}
