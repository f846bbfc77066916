// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// use is one command, terminal, transfer or other call that reaches into a
// sandbox. While it lasts the sandbox is not idle. It stops no verb: a stop
// takes the sandbox from under it, and it ends.
type use struct {
	e   *Engine
	b   *box
	l   *live
	who asker
}

// use begins a use: may the caller, is there such a sandbox, is it up. One that
// idleness stopped is started; one that was stopped otherwise is fault.State.
// The caller ends the use by end, once, from any goroutine.
func (e *Engine) use(ctx context.Context, c access.Caller, scope access.Scope, ref string) (*use, error) {
	if err := e.enter(c, scope); err != nil {
		return nil, err
	}
	u, err := e.reach(ctx, c, ref)
	if err != nil {
		e.group.leave()
		return nil, err
	}
	return u, nil
}

// upTries bounds how often a sandbox is started for one use, where others stop
// it as often.
const upTries = 3

func (e *Engine) reach(ctx context.Context, c access.Caller, ref string) (*use, error) {
	b, err := e.find(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	for range upTries {
		if l := b.hold(now()); l != nil {
			return &use{e, b, l, askerOf(c)}, nil
		}
		if err = e.wake(ctx, b, askerOf(c)); err != nil {
			e.release(b)
			return nil, err
		}
	}
	e.release(b)
	return nil, fault.New(fault.State, "the sandbox %s is being stopped", ref).WithRemedy("start it, then ask again")
}

func (u *use) end() {
	u.b.unhold(now())
	u.e.release(u.b)
	u.e.group.leave()
}

// wake starts a sandbox that idleness stopped, after any verb that is at it.
func (e *Engine) wake(ctx context.Context, b *box, who asker) error {
	return e.turnWork(ctx, b, startBound, func(ctx context.Context) error {
		s := b.record.Load()
		switch {
		case s == nil:
			return noSandbox(string(b.id))
		case s.State == sandbox.Stopped && s.StopCause != sandbox.CauseIdle:
			return notUp(s)
		}
		return e.start(ctx, b, who)
	})
}

func notUp(s *sandbox.Sandbox) error {
	why := string(s.StopCause)
	if s.StopDetail != "" {
		why += ": " + s.StopDetail
	}
	return fault.New(fault.State, "the sandbox %s is stopped (%s)", s.Ref(), why).
		WithRemedy("start it (start %s), then ask again", s.Ref())
}

// recently is the longest time between an instance's end and its watcher's news
// of it, for telling a broken connection from a sandbox that went down.
const recently = 5 * time.Second

// wentDown waits a moment for the news that the sandbox is down.
func (u *use) wentDown(ctx context.Context) bool {
	select {
	case <-u.l.down:
		return true
	default:
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

// fail makes the error of a call into the sandbox clearer where the sandbox went
// down under it.
func (u *use) fail(ctx context.Context, err error) error {
	switch fault.Of(err) {
	case fault.State, fault.Unavailable, fault.Internal:
	default:
		return err
	}
	if u.b.up() == u.l {
		select {
		case <-u.l.down:
		default:
			return err
		}
	}
	if !u.wentDown(ctx) {
		return err
	}
	return fault.Wrap(fault.State, err, "the sandbox %s went down meanwhile (%s)", u.b.id, u.l.exit.Cause).
		WithRemedy("start it, then ask again")
}
