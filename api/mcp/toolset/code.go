// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// Code is what the tools need of contexts of code and shells; *code.Service has it. Every method
// checks the caller's rights.
type Code interface {
	RunCode(ctx context.Context, c access.Caller, ref string, r code.Request, sink *code.Sink) (code.Result, error)
	CreateContext(ctx context.Context, c access.Caller, ref string, r code.ContextRequest) (code.Context, error)
	Contexts(ctx context.Context, c access.Caller, ref string) ([]code.Context, error)
	RestartContext(ctx context.Context, c access.Caller, ref, id string) (code.Context, error)
	InterruptContext(ctx context.Context, c access.Caller, ref, id string) error
	DeleteContext(ctx context.Context, c access.Caller, ref, id string) error
	Shells(ctx context.Context, c access.Caller, ref string) ([]code.Context, error)
	CreateShell(ctx context.Context, c access.Caller, ref string, r code.ShellRequest) (code.Context, error)
	DeleteShell(ctx context.Context, c access.Caller, ref, name string) error
	InterruptShell(ctx context.Context, c access.Caller, ref, name string) error
	ShellExec(ctx context.Context, c access.Caller, ref, name string, r engine.ExecRequest, sink func(sandbox.Frame) error) (code.ShellResult, error)
	ShellCommand(ctx context.Context, c access.Caller, ref, name, id string, wait time.Duration) (code.ShellResult, error)
}
