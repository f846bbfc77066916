// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"time"
)

// CodeRan is what became of code.
type CodeRan struct {
	Result    string     `json:"result"`
	ExitCode  int        `json:"exitCode"`
	Artifacts *Artifacts `json:"artifacts,omitempty"`
}

// Artifacts are what code has shown besides its output.
type Artifacts struct {
	Charts []json.RawMessage `json:"charts"` // each with type, title, elements, and the picture as png in base64
}

// Artifact is one of them as clients before 0.167 read it, in a line of the output.
type Artifact struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// Context is a place whose variables live on.
type Context struct {
	ID        string    `json:"id"`
	Cwd       string    `json:"cwd"`
	Language  string    `json:"language"`
	Active    bool      `json:"active"`
	CreatedAt time.Time `json:"createdAt"`
}

// Contexts are those of a sandbox.
type Contexts struct {
	Contexts []Context `json:"contexts"`
}

// CreateContext is what a new one shall be.
type CreateContext struct {
	Cwd      *string `json:"cwd"`
	Language *string `json:"language"`
}

// Interpret is the one message of a client that has code interpreted.
type Interpret struct {
	Code      string            `json:"code"`
	ContextID string            `json:"contextId"`
	Envs      map[string]string `json:"envs"`
	Timeout   *float64          `json:"timeout"` // seconds
}

// Interpreted is one of the messages that answer it.
type Interpreted struct {
	Type      string `json:"type"` // stdout, stderr, error or control
	Text      string `json:"text,omitempty"`
	Name      string `json:"name,omitempty"`
	Value     string `json:"value,omitempty"`
	Traceback string `json:"traceback,omitempty"`
}

// Env changes the variables of commands that begin afterwards.
type Env struct {
	Set         map[string]string `json:"set"`
	Unset       []string          `json:"unset"`
	UnsetPrefix *string           `json:"unset_value_prefix"` // those whose values begin so
}
