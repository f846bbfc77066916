// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Pause freezes a sandbox's processes with all that they hold in memory. Its meter
// stands, and so do the time limits of its commands; whoever follows one waits.
// Its retention counts from now. One that is paused already is given as it is, but
// is no longer resumed by the next call, should idleness have paused it. One that
// does not run is fault.State, and what its runtime cannot do fault.Unsupported. Like a stop
// it works while the records have no room.
func (e *Engine) Pause(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	c = c.Inside()
	return e.verb(ctx, c, ref, pauseBound, e.take, func(ctx context.Context, b held) error {
		return e.pause(ctx, b, core.ActorOf(c), sandbox.CauseUser, "", nil)
	})
}

// Resume lets the processes of a paused sandbox go on where they were. One that
// runs is given as it is. One that is stopped has no processes: it is fault.State,
// and the remedy start.
func (e *Engine) Resume(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	c = c.Inside()
	return e.verb(ctx, c, ref, pauseBound, e.takeToWork, func(ctx context.Context, b held) error {
		switch s := b.record.Load(); s.State {
		case sandbox.Running:
			return nil
		case sandbox.Paused:
			return e.resume(ctx, b, core.ActorOf(c))
		default:
			return notUp(s)
		}
	})
}

// pause is the four steps. The entry is reconciled. may
// (nil: yes) is asked in the instant in which new uses end; if it says no,
// nothing is done.
func (e *Engine) pause(ctx context.Context, b held, who core.Actor, cause sandbox.Cause, detail string, may func(busy int, last activity) bool) error {
	s := b.record.Load()
	switch {
	case s == nil:
		return core.NoSandbox(string(b.id))
	case s.State == sandbox.Paused:
		return e.keepDown(ctx, b, who, cause)
	case s.State != sandbox.Running:
		return notUp(s)
	}
	p, ok := b.up().inst.(runtime.Pauser)
	if !ok {
		return e.cannot(ctx, s.Runtime, runtime.Pause, "pause a sandbox")
	}
	detail = cmp.Or(detail, who.Did("paused"))
	l, ok, err := e.withdraw(ctx, b, sandbox.Pausing, cause, detail, sandbox.Signaled{}, may)
	if !ok {
		return err
	}
	e.core.Checkpoint("pause.intent")
	l.pauses.Begin() // before the freeze: no limit may pass while it is at it
	if err := p.Pause(ctx); err != nil {
		return e.unpause(ctx, b, l, who, err)
	}
	e.core.Checkpoint("pause.done")
	b.put(l)
	ev := who.Event(sandbox.EventPaused, s, e.now())
	ev.Cause, ev.Detail = cause, detail
	err = e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.State, s.StoppedAt, s.UpdatedAt = sandbox.Paused, ev.At, ev.At
	}, ev)
	if err != nil {
		e.later(b.entry)
		return err
	}
	e.core.Checkpoint("pause.outcome")
	e.plan(b.entry)
	return nil
}

// unpause takes back a pause that failed with err, and gives err.
func (e *Engine) unpause(ctx context.Context, b held, l *session, who core.Actor, err error) error {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	back := l.inst.(runtime.Pauser).Resume(ctx) // whatever the driver says of itself
	if back != nil && !fault.Is(back, fault.State) {
		e.core.Log.Error("a pause that failed cannot be taken back; it is tried again", "sandbox", b.id, "error", back)
		b.put(l)
		e.later(b.entry)
		return err
	}
	if dbErr := e.awoken(ctx, b.entry, failure(who, "pause: "+core.Reason(err))); dbErr != nil {
		e.core.Log.Error("a pause that failed cannot be taken back; it is tried again", "sandbox", b.id, "error", dbErr)
		b.put(l)
		e.later(b.entry)
		return err
	}
	l.pauses.End()
	e.restore(ctx, b, l)
	e.plan(b.entry)
	return err
}

// failure makes an event of a verb that did not work.
func failure(who core.Actor, detail string) func(*sandbox.Sandbox) *sandbox.Event {
	return func(s *sandbox.Sandbox) *sandbox.Event {
		ev := who.Event(sandbox.EventFailed, s, s.UpdatedAt)
		ev.OK, ev.Detail = false, detail
		return ev
	}
}

// awoken commits that a sandbox whose processes go on runs.
func (e *Engine) awoken(ctx context.Context, b *entry, event func(*sandbox.Sandbox) *sandbox.Event) error {
	at := e.now()
	s := clone(b.record.Load())
	s.UpdatedAt = at
	return e.commit(ctx, b, func(s *sandbox.Sandbox) {
		s.State, s.UpdatedAt = sandbox.Running, at
		s.StoppedAt, s.StopCause, s.StopDetail = time.Time{}, "", ""
	}, event(s))
}

// resume is the four steps. The entry is reconciled and Paused.
func (e *Engine) resume(ctx context.Context, b held, who core.Actor) error {
	s, l := b.record.Load(), b.standing()
	p, ok := l.inst.(runtime.Pauser)
	if !ok {
		return e.cannot(ctx, s.Runtime, runtime.Pause, "resume a sandbox")
	}
	err := e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.State, s.UpdatedAt = sandbox.Resuming, e.now()
	})
	if err != nil {
		return err
	}
	e.core.Checkpoint("resume.intent")
	err = p.Resume(ctx)
	if err != nil && (fault.Is(err, fault.State) || p.Paused()) {
		return e.unresume(ctx, b, who, err)
	}
	if err != nil { // its processes go on, and cannot be told not to
		e.later(b.entry)
		return fault.Wrap(fault.Unavailable, err, "the sandbox %s cannot be resumed wholly now", b.id).
			WithRemedy("the server goes on trying; ask again in a while")
	}
	e.core.Checkpoint("resume.done")
	return e.resumed(ctx, b, l, who, "")
}

// resumed commits that a sandbox was resumed, and lets its uses go on.
func (e *Engine) resumed(ctx context.Context, b held, l *session, who core.Actor, detail string) error {
	b.touch(e.now(), actResume)
	err := e.awoken(ctx, b.entry, func(s *sandbox.Sandbox) *sandbox.Event {
		ev := who.Event(sandbox.EventResumed, s, s.UpdatedAt)
		ev.Detail = detail
		return ev
	})
	if err != nil {
		e.later(b.entry)
		return err
	}
	e.core.Checkpoint("resume.outcome")
	l.pauses.End()
	e.retellSudo(b, l)
	e.restore(ctx, b, l)
	e.plan(b.entry)
	return e.adoptOrphans(ctx, b)
}

// unresume takes back a resume that failed with err, and gives err.
func (e *Engine) unresume(ctx context.Context, b held, who core.Actor, err error) error {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	if fault.Is(err, fault.State) {
		// It went down, which its watcher is about to say.
		e.later(b.entry)
		return fault.Wrap(fault.State, err, "the sandbox %s went down while it was paused", b.id).
			WithRemedy("ask for it in a moment, to see why, then start it")
	}
	ev := who.Event(sandbox.EventFailed, b.record.Load(), e.now())
	ev.OK, ev.Detail = false, "resume: "+core.Reason(err)
	dbErr := e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.State, s.UpdatedAt = sandbox.Paused, ev.At
	}, ev)
	if dbErr != nil {
		e.core.Log.Error("a resume that failed cannot be taken back; it is tried again", "sandbox", b.id, "error", dbErr)
		e.later(b.entry)
	}
	return err
}

// unlessPaused returns a context that ends with ctx, or when the instance was awake for bound; see
// [pausing.Clock].
func (e *Engine) unlessPaused(ctx context.Context, l *session, bound time.Duration) (context.Context, context.CancelFunc) {
	return l.pauses.Bound(ctx, e.group.Context(), bound)
}

// cannot is the error for what a runtime does not do, with the reason that it gives.
func (e *Engine) cannot(ctx context.Context, runtimeName string, f runtime.Feature, what string) error {
	caps, err := e.capabilities(ctx, runtimeName)
	if err == nil && caps[f] != nil {
		return caps[f]
	}
	return fault.New(fault.Unsupported, "the runtime %q cannot %s", runtimeName, what)
}

// capabilities asks a runtime what works, in bounded time.
func (e *Engine) capabilities(ctx context.Context, runtimeName string) (runtime.Capabilities, error) {
	d := e.core.Runtimes[runtimeName]
	if d == nil {
		return nil, fault.New(fault.Unavailable, "this server is not configured for the runtime %q", runtimeName)
	}
	ctx, cancel := context.WithTimeout(ctx, probeBound)
	defer cancel()
	return d.Probe(ctx)
}
