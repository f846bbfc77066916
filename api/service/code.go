// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// Code runs code in contexts whose variables live on.
type Code interface {
	RunCode(ctx context.Context, c access.Caller, ref string, r code.Request, sink *code.Sink) (code.Result, error)
	// CodeAgain returns the outcome of what an earlier request has begun; began is false where
	// it has not.
	CodeAgain(ctx context.Context, c access.Caller, of sandbox.ID, cellID string) (res code.Result, began bool, err error)
	CreateContext(ctx context.Context, c access.Caller, ref string, r code.ContextRequest) (code.Context, error)
	Contexts(ctx context.Context, c access.Caller, ref string) ([]code.Context, error)
	Context(ctx context.Context, c access.Caller, ref, id string) (code.Context, error)
	RestartContext(ctx context.Context, c access.Caller, ref, id string) (code.Context, error)
	InterruptContext(ctx context.Context, c access.Caller, ref, id string) error
	DeleteContext(ctx context.Context, c access.Caller, ref, id string) error
}

// Shells runs commands in shells, each after those that came before.
type Shells interface {
	CreateShell(ctx context.Context, c access.Caller, ref string, r code.ShellRequest) (code.Context, error)
	Shells(ctx context.Context, c access.Caller, ref string) ([]code.Context, error)
	Shell(ctx context.Context, c access.Caller, ref, name string) (code.Context, error)
	DeleteShell(ctx context.Context, c access.Caller, ref, name string) error
	InterruptShell(ctx context.Context, c access.Caller, ref, name string) error
	// ShellQueue has a shell run a command when its turn comes, and returns its id at once; ShellQueued returns those that wait,
	// and AwaitCommand waits until one has begun, or will not any more.
	ShellQueue(ctx context.Context, c access.Caller, ref, name string, r engine.ExecRequest) (string, error)
	ShellQueued(ctx context.Context, c access.Caller, ref, name string) ([]code.Queued, error)
	AwaitCommand(ctx context.Context, c access.Caller, ref, name, id string) error
	ShellExec(ctx context.Context, c access.Caller, ref, name string, r engine.ExecRequest, sink func(sandbox.Frame) error) (code.ShellResult, error)
	// ShellCommand returns the result of one of the last commands when it has ended or the
	// wait is over.
	ShellCommand(ctx context.Context, c access.Caller, ref, name, id string, wait time.Duration) (code.ShellResult, error)
}
