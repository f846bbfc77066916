// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"runtime"
	"slices"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

// ShellQueue has a shell run a command as soon as those that were asked for before it have ended, and returns its id at once.
// It is on record then, as one that runs. One whose turn does not come, for its shell is deleted or the server ends, is told
// as one that never began. The Wait and the Started of r mean nothing.
func (s *Service) ShellQueue(ctx context.Context, c access.Caller, ref, name string, r engine.ExecRequest) (string, error) {
	c = c.Inside()
	if err := c.Require(access.SandboxesWrite); err != nil {
		return "", err
	}
	want, err := s.checkShellCommand(name, &r, false)
	if err != nil {
		return "", err
	}
	u, err := s.engine.Use(ctx, c, access.SandboxesWrite, ref, useShell)
	if err != nil {
		return "", err
	}
	x, place, err := s.enqueue(ctx, c, u, want, r)
	if err != nil {
		u.End()
		return "", err
	}
	s.engine.Go(func(own context.Context) { x.whenItsTurn(keyed.Carry(own, ctx), place) })
	return x.ids.CellID, nil
}

// enqueue commits that a command waits for its turn, whose place it returns.
func (s *Service) enqueue(ctx context.Context, c access.Caller, u *engine.Use, want sandbox.Context, r engine.ExecRequest) (*cell, chan struct{}, error) {
	if err := u.CheckRecord(ctx, r.Mark.Texts()); err != nil {
		return nil, nil, err
	}
	all, err := s.loadFor(ctx, u, &want)
	if err != nil {
		return nil, nil, err
	}
	cc, err := all.shell(want)
	if err != nil {
		return nil, nil, err
	}
	if err := sameUser(cc.record(), want, r); err != nil {
		return nil, nil, err
	}
	place, err := cc.ask()
	if err != nil {
		return nil, nil, err
	}
	x := s.shellCell(u, cc, c, r, nil)
	if x.event, err = x.newEvent(); err == nil {
		x.queued = true
		bound, cancel := detached(ctx)
		err = u.Begin(bound, x.event, nil)
		cancel()
	}
	if err != nil {
		x.r.Room.Close()
		cc.giveUp(place)
		return nil, nil, err
	}
	cc.remember(x)
	return x, place, nil
}

// giveUp takes a waiter out of the queue.
func (cc *codeContext) giveUp(place chan struct{}) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if ok, err := cc.await(over, place); ok && err == nil {
		cc.release()
	}
}

// shellCell returns the cell that a shell's command is.
func (s *Service) shellCell(u *engine.Use, cc *codeContext, c access.Caller, r engine.ExecRequest, sink *Sink) *cell {
	code := Request{
		Code: shellText(&r), Env: r.Env, Timeout: r.Timeout, MaxStdout: r.MaxStdout, MaxStderr: r.MaxStderr,
		InterruptOnDisconnect: r.KillOnDisconnect, Room: s.memory.Open(c.Project),
	}
	if sink != nil { // what is kept is for who asks again
		code.MaxStdout, code.MaxStderr = min(r.MaxStdout, engine.DefaultOutput), min(r.MaxStderr, engine.DefaultOutput)
	}
	x := newCell(u, cc, code, sink)
	x.collect, x.stdin = true, r.Stdin
	x.command = engine.ExecRequest{
		StreamStdin: r.StreamStdin, MergeOutput: r.MergeOutput, MaxStdout: r.MaxStdout, MaxStderr: r.MaxStderr, Mark: r.Mark, Redact: r.Redact,
	}
	// What a shell remembers counts as long as it does. The shell may go in many ways.
	runtime.AddCleanup(x, (*budget.Room).Close, code.Room)
	return x
}

// sameUser refuses a command that asks for another user than its shell's.
func sameUser(rec, want sandbox.Context, r engine.ExecRequest) error {
	if r.User != "" && rec.User != want.User {
		return fault.InvalidField("user", "is %s, and the shell %q is of %s", want.User, rec.Name, rec.User)
	}
	return nil
}

// whenItsTurn is the life of a command that waits for its turn.
func (x *cell) whenItsTurn(ctx context.Context, place chan struct{}) {
	switch ok, err := x.cc.await(ctx, place); {
	case ok && err == nil:
		x.do(ctx)
		return
	case err != nil: // the next server says that it never began
		x.err, x.out = engine.Stopping(), Result{Start: x.ids}
	default:
		x.never(ctx, fault.New(fault.NotFound, "its shell was deleted before its turn came"))
	}
	x.u.End()
	close(x.done)
}

// never completes the row of a command whose turn did not come.
func (x *cell) never(ctx context.Context, err error) {
	process.NotRun(x.event, err, x.s.engine.Now())
	x.record(ctx, 0)
	x.err, x.out = err, Result{}
}

// Queued is a command of a shell that waits for its turn.
type Queued struct{ ID, Command string }

// ShellQueued returns those of a shell that wait for their turn, in its order.
func (s *Service) ShellQueued(ctx context.Context, c access.Caller, ref, name string) ([]Queued, error) {
	cc, err := s.findShell(ctx, c, access.SandboxesRead, ref, name)
	if err != nil {
		return nil, err
	}
	cc.mu.Lock()
	defer cc.mu.Unlock()
	var all []Queued
	for _, x := range cc.recent {
		if x.queued && x.waits() && !x.isRunning() {
			all = append(all, Queued{x.ids.CellID, x.r.Code})
		}
	}
	return all, nil
}

// awaitQueued waits until none of the commands of a context that is gone waits for its turn: what did not begin is on record.
func (cc *codeContext) awaitQueued(ctx context.Context) error {
	cc.mu.Lock()
	all := slices.Clone(cc.recent)
	cc.mu.Unlock()
	for _, x := range all {
		if !x.queued {
			continue
		}
		if err := x.awaitTurn(ctx); err != nil {
			return err
		}
	}
	return nil
}

// isRunning reports whether the command has begun.
func (x *cell) isRunning() bool {
	select {
	case <-x.running:
		return true
	default:
		return false
	}
}

// AwaitCommand returns when a command of a shell has begun, or will not any more.
func (s *Service) AwaitCommand(ctx context.Context, c access.Caller, ref, name, id string) error {
	cc, err := s.findShell(ctx, c, access.SandboxesRead, ref, name)
	if err != nil {
		return err
	}
	x := cc.command(id)
	if x == nil {
		return nil
	}
	return x.awaitTurn(ctx)
}

// awaitTurn waits until the command has begun, or will not any more.
func (x *cell) awaitTurn(ctx context.Context) error {
	bound, leave := x.s.engine.Bind(ctx)
	defer leave()
	select {
	case <-x.running:
	case <-x.done:
	case <-bound.Done():
		if ctx.Err() == nil {
			return context.Cause(bound)
		}
		return ctx.Err()
	}
	return nil
}
