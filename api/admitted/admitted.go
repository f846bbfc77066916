// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package admitted has all coats begin no more at once than the host carries: creates and starts by one gate,
// commands by another. What has begun needs no place: a command holds its own until its process is there, and then it
// may run for hours. What the server begins by itself (steps of builds, what templates start, the commands of a run)
// goes by no gate, since it belongs to what was admitted already.
package admitted

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/api/service"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/internal/admission"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

// Gates are what bounds beginnings.
type Gates struct {
	Creates  *admission.Gate // of sandboxes, and whatever brings one up
	Commands *admission.Gate // of commands, processes, cells, shells, terminals and runs
}

// Wrap returns s with what begins something behind the gates.
func (g Gates) Wrap(s service.Services) service.Services {
	s.Sandboxes = sandboxes{s.Sandboxes, g.Creates}
	s.Snapshots = snapshots{s.Snapshots, g.Creates}
	s.Commands = commands{s.Commands, g}
	s.Processes = processes{s.Processes, g.Commands}
	s.Code = cells{s.Code, g.Commands}
	s.Shells = shells{s.Shells, g.Commands}
	s.Runs = batches{s.Runs, g.Commands}
	return s
}

// through returns what do returns, once it has a place at a gate and as long as it holds it.
func through[T any](ctx context.Context, gate *admission.Gate, c access.Caller, do func() (T, error)) (T, error) {
	leave, err := enter(ctx, gate, c)
	if err != nil {
		var none T
		return none, err
	}
	defer leave()
	return do()
}

// enter is [admission.Gate.Enter] for who may do something at all: others learn nothing of what goes on, and wait
// for nothing.
func enter(ctx context.Context, gate *admission.Gate, c access.Caller) (leave func(), err error) {
	// Whether the caller reaches the sandbox is for the verb to say.
	if err := c.Inside().Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	return gate.Enter(ctx, c.Project)
}

type sandboxes struct {
	service.Sandboxes
	gate *admission.Gate
}

func (s sandboxes) Create(ctx context.Context, c access.Caller, r engine.CreateRequest) (*sandbox.Sandbox, bool, error) {
	leave, err := enter(ctx, s.gate, c)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	return s.Sandboxes.Create(ctx, c, r)
}

func (s sandboxes) Start(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	return through(ctx, s.gate, c, func() (*sandbox.Sandbox, error) { return s.Sandboxes.Start(ctx, c, ref) })
}

func (s sandboxes) Restart(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	return through(ctx, s.gate, c, func() (*sandbox.Sandbox, error) { return s.Sandboxes.Restart(ctx, c, ref) })
}

func (s sandboxes) Reset(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	return through(ctx, s.gate, c, func() (*sandbox.Sandbox, error) { return s.Sandboxes.Reset(ctx, c, ref) })
}

type disks = service.Snapshots // one of whose methods has its name

type snapshots struct {
	disks
	gate *admission.Gate
}

func (s snapshots) Rollback(ctx context.Context, c access.Caller, ref, to string) (*sandbox.Sandbox, error) {
	return through(ctx, s.gate, c, func() (*sandbox.Sandbox, error) { return s.disks.Rollback(ctx, c, ref, to) })
}

func (s snapshots) Fork(ctx context.Context, c access.Caller, ref string, r engine.ForkRequest) ([]*sandbox.Sandbox, error) {
	return through(ctx, s.gate, c, func() ([]*sandbox.Sandbox, error) { return s.disks.Fork(ctx, c, ref, r) })
}

type commands struct {
	service.Commands
	gates Gates
}

// begun returns r with a place given back as soon as its command has begun.
func begun(r engine.ExecRequest, leave func()) engine.ExecRequest {
	told := r.Started
	r.Started = func(id string) {
		leave()
		if told != nil {
			told(id)
		}
	}
	return r
}

func (s commands) Exec(ctx context.Context, c access.Caller, ref string, r engine.ExecRequest, sink func(sandbox.Frame) error) (engine.ExecResult, error) {
	leave, err := enter(ctx, s.gates.Commands, c)
	if err != nil {
		return engine.ExecResult{}, err
	}
	defer leave()
	return s.Commands.Exec(ctx, c, ref, begun(r, leave), sink)
}

func (s commands) CreateExec(ctx context.Context, c access.Caller, in engine.CreateRequest, r engine.ExecRequest, found func(engine.Place), sink func(sandbox.Frame) error) (engine.Place, engine.ExecResult, error) {
	leave, err := enter(ctx, s.gates.Creates, c)
	if err != nil {
		return engine.Place{}, engine.ExecResult{}, err
	}
	defer leave()
	return s.Commands.CreateExec(ctx, c, in, begun(r, leave), found, sink)
}

type processes struct {
	service.Processes
	gate *admission.Gate
}

func (s processes) StartProcess(ctx context.Context, c access.Caller, ref string, r engine.StartRequest) (sandbox.Process, error) {
	return through(ctx, s.gate, c, func() (sandbox.Process, error) { return s.Processes.StartProcess(ctx, c, ref, r) })
}

func (s processes) Terminal(ctx context.Context, c access.Caller, ref string, r engine.TerminalRequest) (*engine.Terminal, error) {
	return through(ctx, s.gate, c, func() (*engine.Terminal, error) { return s.Processes.Terminal(ctx, c, ref, r) })
}

type cells struct {
	service.Code
	gate *admission.Gate
}

func (s cells) RunCode(ctx context.Context, c access.Caller, ref string, r code.Request, sink *code.Sink) (code.Result, error) {
	leave, err := enter(ctx, s.gate, c)
	if err != nil {
		return code.Result{}, err
	}
	defer leave()
	if sink == nil { // nobody is told when it begins: the lease is its end
		return s.Code.RunCode(ctx, c, ref, r, nil)
	}
	own := *sink
	own.Started = func(at code.Start) error {
		leave()
		if sink.Started == nil {
			return nil
		}
		return sink.Started(at)
	}
	return s.Code.RunCode(ctx, c, ref, r, &own)
}

func (s cells) CreateContext(ctx context.Context, c access.Caller, ref string, r code.ContextRequest) (code.Context, error) {
	return through(ctx, s.gate, c, func() (code.Context, error) { return s.Code.CreateContext(ctx, c, ref, r) })
}

type sessions = service.Shells // likewise

type shells struct {
	sessions
	gate *admission.Gate
}

func (s shells) CreateShell(ctx context.Context, c access.Caller, ref string, r code.ShellRequest) (code.Context, error) {
	return through(ctx, s.gate, c, func() (code.Context, error) { return s.sessions.CreateShell(ctx, c, ref, r) })
}

func (s shells) ShellExec(ctx context.Context, c access.Caller, ref, name string, r engine.ExecRequest, sink func(sandbox.Frame) error) (code.ShellResult, error) {
	leave, err := enter(ctx, s.gate, c)
	if err != nil {
		return code.ShellResult{}, err
	}
	defer leave()
	return s.sessions.ShellExec(ctx, c, ref, name, begun(r, leave), sink)
}

func (s shells) ShellQueue(ctx context.Context, c access.Caller, ref, name string, r engine.ExecRequest) (string, error) {
	return through(ctx, s.gate, c, func() (string, error) { return s.sessions.ShellQueue(ctx, c, ref, name, r) })
}

type batches struct {
	service.Runs
	gate *admission.Gate
}

func (s batches) Start(ctx context.Context, c access.Caller, r runs.Request) (*sandbox.Run, error) {
	return through(ctx, s.gate, c, func() (*sandbox.Run, error) { return s.Runs.Start(ctx, c, r) })
}
