// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sandpit.dev/agent"
	"sandpit.dev/engine/command"
)

// Requests of commands.
type (
	ExecRequest     = command.Request
	StartRequest    = command.Start
	TerminalRequest = command.Terminal
	TerminalSize    = command.TerminalSize
)

// Bounds of a command.
const (
	MaxStdin              = command.MaxStdin
	MaxCollected          = command.MaxCollected
	MaxStreamed           = command.MaxStreamed
	DefaultOutput         = command.DefaultOutput
	MaxCommandTimeout     = command.MaxCommandTimeout
	DefaultDetachedOutput = command.DefaultDetachedOutput
)

// command checks a request and makes of it what the agent needs. The sandbox's
// own variables are added later.
func (e *Engine) command(r ExecRequest, streamed bool) (agent.Command, error) {
	return r.Command(e.settings.Load(), streamed)
}
