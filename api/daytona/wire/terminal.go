// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "time"

// Terminal is a terminal.
type Terminal struct {
	ID        string            `json:"id"`
	Cwd       string            `json:"cwd"`
	Envs      map[string]string `json:"envs"`
	Cols      int               `json:"cols"`
	Rows      int               `json:"rows"`
	CreatedAt time.Time         `json:"createdAt"`
	Active    bool              `json:"active"`
	LazyStart bool              `json:"lazyStart"`
}

// Terminals are those of a sandbox.
type Terminals struct {
	Sessions []Terminal `json:"sessions"`
}

// CreateTerminal is what a new one shall be.
type CreateTerminal struct {
	ID        *string           `json:"id"`
	Cwd       *string           `json:"cwd"`
	Envs      map[string]string `json:"envs"`
	Cols      *int              `json:"cols"`
	Rows      *int              `json:"rows"`
	LazyStart *bool             `json:"lazyStart"`
}

// TerminalMade names one.
type TerminalMade struct {
	SessionID string `json:"sessionId"`
}

// TerminalSize is a size in characters.
type TerminalSize struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// Control is a message of a terminal's socket that is no output.
type Control struct {
	Type     string `json:"type"`   // control
	Status   string `json:"status"` // connected, error or exited
	Error    string `json:"error,omitempty"`
	ExitCode *int   `json:"exitCode,omitempty"`
	Reason   string `json:"exitReason,omitempty"`
}

// Exit is the reason that a terminal's socket is closed with.
type Exit struct {
	ExitCode int    `json:"exitCode"`
	Reason   string `json:"exitReason,omitempty"`
	Error    string `json:"error,omitempty"`
}
