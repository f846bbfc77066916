// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Use is one command, terminal, transfer or other call that reaches into a
// sandbox. While it lasts the sandbox is not idle. It stops no verb: a stop
// takes the sandbox from under it, and it ends; a pause has it wait.
type Use struct {
	e    *Engine
	b    *entry
	l    *session
	who  core.Actor
	what string // one of the words below
}

// What counts as activity, in a word for people.
const (
	actCall     = "a call by its name"
	actCode     = "code"
	actExec     = "exec"
	actProcess  = "a process"
	actResume   = "its resume"
	actStart    = "its start"
	actTerminal = "a terminal"
	actAside    = "" // no activity: it does not keep the sandbox from idling
)

// use begins a use: may the caller, is there such a sandbox, is it up. One that
// went down, or was paused, without a caller having asked for it is brought up; see
// wake for the rules. Else it is fault.State. The caller ends the use by End, once,
// from any goroutine.
func (e *Engine) use(ctx context.Context, c access.Caller, scope access.Scope, ref, what string) (*Use, error) {
	enter := e.enter
	if scope == access.SandboxesWrite {
		enter = e.enterWork
	}
	return e.useBy(ctx, enter, c, scope, ref, what)
}

func (e *Engine) useBy(ctx context.Context, enter func(access.Caller, access.Scope) error, c access.Caller, scope access.Scope, ref, what string) (*Use, error) {
	if err := enter(c, scope); err != nil {
		return nil, err
	}
	u, err := e.reach(ctx, c, ref, what, (*sandbox.Sandbox).Wakes)
	if err != nil {
		e.group.Leave()
		return nil, err
	}
	return u, nil
}

// upTries bounds how often a sandbox is brought up for one use, where others take
// it down as often.
const upTries = 3

// reach returns a use of a sandbox that may is asked to allow bringing up.
func (e *Engine) reach(ctx context.Context, c access.Caller, ref, what string, may func(*sandbox.Sandbox) bool) (*Use, error) {
	b, err := e.find(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	for range upTries {
		if e.passedOn(c, ref, b) {
			e.release(b)
			if b, err = e.find(ctx, c, ref); err != nil {
				return nil, err
			}
		}
		if l := b.hold(e.now(), what); l != nil {
			return &Use{e, b, l, core.ActorOf(c), what}, nil
		}
		if err = e.wake(ctx, b, core.ActorOf(c), may); err != nil && !e.passedOn(c, ref, b) {
			e.release(b)
			return nil, err
		}
	}
	e.release(b)
	return nil, fault.New(fault.State, "the sandbox %s is being stopped", ref).WithRemedy("start it, then ask again")
}

// End ends the use. It is called once, from any goroutine.
func (u *Use) End() {
	if u.what != actAside {
		u.b.unhold(u.e.now(), u.what)
	}
	u.e.release(u.b)
	u.e.group.Leave()
}

// wake brings a sandbox up, after any verb that is at it, if its record and may
// allow that.
func (e *Engine) wake(ctx context.Context, b *entry, who core.Actor, may func(*sandbox.Sandbox) bool) error {
	if s := b.record.Load(); s != nil && !s.State.Intent() && s.State != sandbox.Running && !may(s) {
		return notUp(s) // without waiting for anything
	}
	if err := e.core.Store.Room(); err != nil {
		return err
	}
	return e.turnWork(ctx, b, startBound, e.take, func(ctx context.Context, b held) error {
		if s := b.record.Load(); s != nil && s.State != sandbox.Running && !may(s) {
			return notUp(s)
		}
		return e.start(ctx, b, who)
	})
}

// resumes is Wakes for what is only of use to processes that are there already.
func resumes(s *sandbox.Sandbox) bool { return s.State == sandbox.Paused && s.Wakes() }

// never is Wakes for what looks on.
func never(*sandbox.Sandbox) bool { return false }

// notUp is the error for a call to a sandbox that is not up.
func notUp(s *sandbox.Sandbox) error {
	why := string(s.StopCause)
	if s.StopDetail != "" {
		why += ": " + s.StopDetail
	}
	switch s.State {
	case sandbox.Paused:
		return fault.New(fault.State, "the sandbox %s is paused (%s)", s.Ref(), why).
			WithRemedy("resume it (resume %s), then ask again", s.Ref())
	case sandbox.Failed:
		return fault.New(fault.State, "the sandbox %s has failed (%s)", s.Ref(), why).
			WithRemedy("put back what is missing and start it (start %s), or delete it and create a new one", s.Ref())
	case sandbox.Stopped, sandbox.Archived:
		return fault.New(fault.State, "the sandbox %s is %s (%s)", s.Ref(), s.State, why).
			WithRemedy("start it (start %s), then ask again", s.Ref())
	}
	return fault.New(fault.State, "the sandbox %s is %s", s.Ref(), s.State).WithRemedy("ask again in a moment")
}

// recently is the longest time between an instance's end and its watcher's news
// of it, for telling a broken connection from a sandbox that went down.
const recently = 5 * time.Second

// wentDown waits a moment for the news that the sandbox is down.
func (u *Use) wentDown(ctx context.Context) bool {
	if u.isDown() {
		return true
	}
	t := time.NewTimer(recently)
	defer t.Stop()
	select {
	case <-u.l.down:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// Fail makes the error of a call into the sandbox clearer where the sandbox went
// down under it.
func (u *Use) Fail(ctx context.Context, err error) error {
	switch fault.Of(err) {
	case fault.State, fault.Unavailable, fault.Internal:
	case fault.Canceled: // by an agent that ends, unless the caller did it
		if ctx.Err() != nil {
			return err
		}
	default:
		return err
	}
	if u.b.standing() == u.l && !u.isDown() && !u.lostAgent(ctx, err) {
		return err
	}
	if !u.wentDown(ctx) {
		return err
	}
	return fault.Wrap(fault.State, err, "the sandbox %s went down meanwhile (%s)", u.b.id, u.l.exit.Cause).
		WithRemedy("start it, then ask again")
}

// lostAgent reports whether the agent of a call that failed with err is gone. Connections to it break, and it
// gives up what waits in it, before the watcher hears that its sandbox is down.
func (u *Use) lostAgent(ctx context.Context, err error) bool {
	if code := fault.Of(err); code != fault.Unavailable && code != fault.Canceled || errors.Is(err, agent.ErrSilent) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, recently)
	defer cancel()
	_, err = u.l.client.Ping(ctx)
	return err != nil && !errors.Is(err, agent.ErrSilent)
}
