// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"syscall"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/sandbox"
)

// Commands runs commands and waits for them. The output goes to sink as it comes, or with a nil
// sink into the result.
type Commands interface {
	Exec(ctx context.Context, c access.Caller, ref string, r engine.ExecRequest, sink func(sandbox.Frame) error) (engine.ExecResult, error)
	// CreateExec is Create and Exec in one; found is called when the sandbox is there.
	CreateExec(ctx context.Context, c access.Caller, in engine.CreateRequest, r engine.ExecRequest, found func(engine.Place), sink func(sandbox.Frame) error) (engine.Place, engine.ExecResult, error)
	// ExecAgain goes on with what an earlier request has begun; began is false where it
	// has not.
	ExecAgain(ctx context.Context, c access.Caller, of sandbox.ID, processID string, r engine.ExecRequest, sink func(sandbox.Frame) error) (res engine.ExecResult, began bool, err error)
}

// Processes starts processes that belong to their sandbox, and follows and controls them.
type Processes interface {
	StartProcess(ctx context.Context, c access.Caller, ref string, r engine.StartRequest) (sandbox.Process, error)
	// ProcessAgain returns what an earlier request has begun; began is false where it has not.
	ProcessAgain(ctx context.Context, c access.Caller, of sandbox.ID, processID string) (p sandbox.Process, began bool, err error)
	Process(ctx context.Context, c access.Caller, ref, processID string) (sandbox.Process, error)
	ListProcesses(ctx context.Context, c access.Caller, ref string, q process.Query) (process.Page, error)
	// WaitProcess returns a process when it has ended or the wait is over.
	WaitProcess(ctx context.Context, c access.Caller, ref, processID string, wait time.Duration) (sandbox.Process, error)
	Follow(ctx context.Context, c access.Caller, ref, processID string, r engine.FollowRequest) (*engine.Following, error)
	WriteInput(ctx context.Context, c access.Caller, ref, processID string, r engine.InputRequest) (sandbox.InputTaken, error)
	SignalProcess(ctx context.Context, c access.Caller, ref, processID string, sig syscall.Signal, tree bool) error
	ResizeProcess(ctx context.Context, c access.Caller, ref, processID string, cols, rows int) error
	KillProcess(ctx context.Context, c access.Caller, ref, processID string) error
	// KillAll ends all that runs in a sandbox, and leaves its files.
	KillAll(ctx context.Context, c access.Caller, ref string) error
	// Terminal opens a terminal that hangs up when it is closed.
	Terminal(ctx context.Context, c access.Caller, ref string, r engine.TerminalRequest) (*engine.Terminal, error)
}
