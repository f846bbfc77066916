// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Execute is a command line, which a shell reads.
type Execute struct {
	Command string            `json:"command"`
	Cwd     *string           `json:"cwd"`
	Envs    map[string]string `json:"envs"`
	Env     map[string]string `json:"env"`     // as clients before 0.27 have it
	Timeout *float64          `json:"timeout"` // seconds; nil and 0: none
}

// Executed is what became of it. A command that failed is no error.
type Executed struct {
	ExitCode int    `json:"exitCode"`
	Result   string `json:"result"` // both streams, as they came
}

// RunCode is code that is run once.
type RunCode struct {
	Code     string            `json:"code"`
	Language *string           `json:"language"`
	Argv     []string          `json:"argv"`
	Envs     map[string]string `json:"envs"`
	Timeout  *float64          `json:"timeout"` // seconds
}

// Session is a shell that stays.
type Session struct {
	SessionID string    `json:"sessionId"`
	Commands  []Command `json:"commands"`
}

// CreateSession names one.
type CreateSession struct {
	SessionID string `json:"sessionId"`
}

// Command is a command of a session.
type Command struct {
	ID       string `json:"id"`
	Command  string `json:"command"`
	ExitCode *int   `json:"exitCode,omitempty"` // nil: it runs
}

// SessionExecute is a command line for a session's shell.
type SessionExecute struct {
	Command  string `json:"command"`
	RunAsync *bool  `json:"runAsync"`
	Async    *bool  `json:"async"` // as older clients have it
	Suppress *bool  `json:"suppressInputEcho"`
}

// SessionExecuted is what became of it; of one that runs on there is its id.
type SessionExecuted struct {
	CommandID string  `json:"cmdId"`
	Output    *string `json:"output,omitempty"`
	Stdout    *string `json:"stdout,omitempty"`
	Stderr    *string `json:"stderr,omitempty"`
	ExitCode  *int    `json:"exitCode,omitempty"`
}

// Logs is the output of a session's command.
type Logs struct {
	Output string `json:"output"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// Input is what a command reads.
type Input struct {
	Data string `json:"data"`
}
