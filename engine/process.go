// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"syscall"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Process returns one command, which a caller names here and wherever an id goes by its id, by name:NAME or by
// pid:N, see [process.ParseRef]: of a sandbox that is up, as its agent knows it; of
// one that is down, or that the agent has let go of, as far as its event tells.
func (e *Engine) Process(ctx context.Context, c access.Caller, ref, processID string) (sandbox.Process, error) {
	processID, err := e.processID(ctx, c, ref, processID)
	if err != nil {
		return sandbox.Process{}, err
	}
	rec, err := e.liveProcess(ctx, c, ref, processID)
	switch fault.Of(err) {
	case fault.State, fault.NotFound:
		return e.pastProcess(ctx, c, ref, processID)
	}
	return rec, err
}

func (e *Engine) liveProcess(ctx context.Context, c access.Caller, ref, processID string) (sandbox.Process, error) {
	u, err := e.glance(ctx, c, ref)
	if err != nil {
		return sandbox.Process{}, err
	}
	defer u.End()
	rec, err := u.l.client.Process(ctx, processID)
	if err != nil {
		return sandbox.Process{}, u.Fail(ctx, err)
	}
	one := []sandbox.Process{rec}
	if err = u.tellEnds(ctx, one); err == nil {
		err = u.markOne(ctx, &one[0])
	}
	return one[0], err
}

// Processes returns the commands of a running sandbox: those that run, and those
// that ended and whose output is still kept.
func (e *Engine) Processes(ctx context.Context, c access.Caller, ref string) ([]sandbox.Process, error) {
	return e.processes(ctx, c, ref, (*agent.Client).Processes)
}

// processes returns those that list gives.
func (e *Engine) processes(ctx context.Context, c access.Caller, ref string, list func(*agent.Client, context.Context) ([]sandbox.Process, error)) ([]sandbox.Process, error) {
	u, err := e.glance(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	defer u.End()
	recs, err := list(u.l.client, ctx)
	if err != nil {
		return nil, u.Fail(ctx, err)
	}
	if err := u.tellEnds(ctx, recs); err != nil {
		return nil, err
	}
	return recs, u.mark(ctx, recs)
}

// KillProcess ends a command and all that it started, and waits until they are
// gone. Its result has the cause killed. One that has ended already is fine.
func (e *Engine) KillProcess(ctx context.Context, c access.Caller, ref, processID string) error {
	processID, err := e.processID(ctx, c, ref, processID)
	if err != nil {
		return err
	}
	u, err := e.peek(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return err
	}
	defer u.End()
	x := e.extension.Command(u, processID)
	err = u.sending(ctx, processID, syscall.SIGKILL, func() error {
		if x == nil {
			return u.Fail(ctx, u.l.client.Kill(ctx, processID, sandbox.CauseKilled))
		}
		return x.Signal(ctx, syscall.SIGKILL)
	})
	if x != nil && (err == nil || fault.Is(err, fault.State)) {
		return x.Await(ctx, killBound)
	}
	return err
}

// KillAll ends all that runs in a sandbox that is up, also what ended commands left, and waits
// until it is gone; files stay. Nothing is forked inside, so that it ends a fork bomb, too.
func (e *Engine) KillAll(ctx context.Context, c access.Caller, ref string) error {
	return e.inside(ctx, c, ref, func(u *Use) error {
		u.Ending(ctx, "")
		return u.l.client.KillAll(ctx)
	})
}

// peek is use without starting the sandbox: what is asked for is of its running,
// and would be gone with a start. One that is paused is resumed, as for any use.
func (e *Engine) peek(ctx context.Context, c access.Caller, scope access.Scope, ref string) (*Use, error) {
	return e.peekAs(ctx, c, scope, ref, resumes)
}

// glance is peek without resuming it, either.
func (e *Engine) glance(ctx context.Context, c access.Caller, ref string) (*Use, error) {
	return e.peekAs(ctx, c, access.SandboxesRead, ref, never)
}

func (e *Engine) peekAs(ctx context.Context, c access.Caller, scope access.Scope, ref string, may func(*sandbox.Sandbox) bool) (*Use, error) {
	c = c.Inside()
	if err := e.enter(c, scope); err != nil {
		return nil, err
	}
	u, err := e.peekInto(ctx, c, ref, may)
	if err != nil {
		e.group.Leave()
		return nil, err
	}
	return u, nil
}

func (e *Engine) peekInto(ctx context.Context, c access.Caller, ref string, may func(*sandbox.Sandbox) bool) (*Use, error) {
	b, err := e.find(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	l := b.hold(e.now(), actCall)
	// What runs and cannot be held is of an earlier server, or a verb is at it.
	if s := b.record.Load(); l == nil && s != nil && (may(s) || s.State == sandbox.Running) {
		if err := e.wake(ctx, b, core.ActorOf(c), may); err != nil {
			again := e.passedOn(c, ref, b)
			e.release(b)
			if again {
				return e.peekInto(ctx, c, ref, may)
			}
			return nil, err
		}
		l = b.hold(e.now(), actCall)
	}
	if l != nil {
		return &Use{e, b, l, core.ActorOf(c), actCall}, nil
	}
	s := b.record.Load()
	e.release(b)
	if s == nil {
		return nil, core.NoSandbox(ref)
	}
	return nil, notUp(s)
}
