// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// NewEvent returns the event of a command that is about to begin, for Begin. A sandbox that was
// deleted meanwhile is fault.NotFound.
func (u *Use) NewEvent(t sandbox.EventType) (*sandbox.Event, error) {
	s := u.b.record.Load()
	if s == nil {
		return nil, core.NoSandbox(string(u.b.id))
	}
	ev := u.who.Event(t, s, u.e.now())
	ev.Done, ev.OK = false, false
	return ev, nil
}

// NewCallEvent returns the event of a call that is over when it is recorded, for RecordCall. It
// is there also for a sandbox that was deleted meanwhile.
func (u *Use) NewCallEvent(t sandbox.EventType) *sandbox.Event {
	s := u.b.record.Load()
	if s == nil {
		s = &sandbox.Sandbox{ID: u.b.id, Project: u.b.project}
	}
	return u.who.Event(t, s, u.e.now())
}

// RecordCall commits the event of a call, with what count adds to the sandbox's counters. It is
// done, whatever becomes of ctx.
func (u *Use) RecordCall(ctx context.Context, ev *sandbox.Event, count func(*sandbox.Sandbox)) error {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	return u.recorded(ev, u.e.tally(ctx, u.b, count, func(tx store.Tx) error { return tx.Events().Append(ev) }, ev))
}

// RecordChange is RecordCall for a change of the record that is true of the sandbox's disk as the
// use found it. Where the sandbox went down meanwhile, which may have cost it that disk, nothing is
// written, and the error is fault.State.
func (u *Use) RecordChange(ctx context.Context, ev *sandbox.Event, change func(*sandbox.Sandbox)) error {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	return u.recorded(ev, u.e.commitWith(ctx, u.b, change, func(tx store.Tx) error {
		if u.b.standing() != u.l {
			return fault.New(fault.State, "the sandbox %s went down meanwhile", u.b.id).WithRemedy("ask again")
		}
		return tx.Events().Append(ev)
	}, ev))
}

func (u *Use) recorded(ev *sandbox.Event, err error) error {
	if fault.Is(err, fault.State) {
		return err
	}
	if err != nil {
		u.e.core.Log.Error("a call cannot be recorded", "sandbox", u.b.id, "type", ev.Type, "error", err)
		return fault.Wrap(fault.Unavailable, err, "it was done, and cannot be recorded")
	}
	return nil
}

// Begin commits the intent of a command: its event, and what more, which may be nil, writes.
func (u *Use) Begin(ctx context.Context, ev *sandbox.Event, more func(store.Tx) error) error {
	err := u.e.core.Store.Update(ctx, func(tx store.Tx) error {
		if err := tx.Events().Append(ev); err != nil || more == nil {
			return err
		}
		return more(tx)
	})
	if err == nil {
		u.e.core.Metrics.Happened([]*sandbox.Event{ev})
	}
	return err
}

// Record commits the outcome of a command: its event, the sandbox's counters, and what more
// writes. It is done, whatever becomes of ctx. Where the sandbox is deleted, and the event was
// completed with that, there is nothing to do.
func (u *Use) Record(ctx context.Context, ev *sandbox.Event, took time.Duration, more func(store.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitBound)
	defer cancel()
	err := u.e.tally(ctx, u.b, func(s *sandbox.Sandbox) {
		s.ExecCount++
		s.ExecTime += took
	}, func(tx store.Tx) error {
		if err := tx.Events().Finish(ev); err != nil {
			return err
		}
		return more(tx)
	})
	if s := u.b.record.Load(); fault.Is(err, fault.Conflict) && (s == nil || s.State == sandbox.Deleting) {
		return nil
	}
	return err
}

// Conclude has commit write the outcome of a command, which is in ev, behind the answer to its
// caller, and ends the use then. Who reads the sandbox's record or events waits for that.
func (u *Use) Conclude(ev *sandbox.Event, commit func(context.Context)) {
	res := sandbox.Result{Signal: ev.Signal, Cause: ev.Cause}
	u.l.signals.Tell(ev.ProcessID, &res)
	u.l.signals.Over(ev.ProcessID)
	ev.Signaled = res.Signaled
	u.e.core.Metrics.Ran(ev, &sandbox.Result{ExitCode: ev.ExitCode, Cause: ev.Cause, Duration: ev.Duration})
	end := u.e.outcomes.Begin(u.b)
	u.e.group.Spawn(func(ctx context.Context) {
		defer u.End()
		defer end()
		commit(ctx)
		u.expect()
	})
}

// Outcome waits until a command that an earlier request began has ended, and returns its event.
// began is as in ExecAgain.
func (e *Engine) Outcome(ctx context.Context, c access.Caller, of sandbox.ID, processID string) (ev *sandbox.Event, began bool, err error) {
	if c = c.Inside(); !c.Reaches(of) {
		return nil, false, core.NoSandbox(string(of))
	}
	if err := e.enter(c, access.SandboxesWrite); err != nil {
		return nil, false, err
	}
	defer e.group.Leave()
	if ev, err = e.commandRow(ctx, c.Project, of, processID); err != nil {
		return nil, false, err
	}
	here, leave := e.group.Bind(ctx)
	defer leave()
	if ev, err = e.commandEnd(here, ev); err != nil {
		if ctx.Err() == nil && here.Err() != nil {
			err = context.Cause(here)
		}
		return nil, true, err
	}
	return ev, !process.NeverBegan(ev), nil
}
