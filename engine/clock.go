// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine/alarm"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/expiry"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

const (
	// retryAfter is when work that could not be finished is tried again.
	retryAfter = 30 * time.Second
	// atOnce bounds how many sandboxes the clocks stop or delete at a time, so
	// that a thousand that were started together do not end together.
	atOnce = 4
	// The clocks of sandboxes that are down are read from the store, every
	// sweepEvery, as far as they expire within horizon: there may be many of them.
	sweepEvery = 5 * time.Minute
	horizon    = 10 * time.Minute
)

// runClock looks at each sandbox when its time comes, until ctx is done.
func (e *Engine) runClock(ctx context.Context) {
	e.group.Spawn(e.runSweep)
	watch := alarm.HostClock{Wall: e.now(), Steady: time.Now()}
	slots := make(chan struct{}, atOnce)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		at := e.now()
		if d := watch.Set(at, time.Now()); d != 0 {
			e.clockSet(at, d)
		}
		id, ok, wait := e.clock.Due(at)
		if !ok {
			timer.Reset(wait)
			end := time.Now().Add(wait)
			select {
			case <-timer.C:
			case <-e.clock.Changed():
			case <-ctx.Done():
				return
			}
			if late := time.Since(end); late >= alarm.Jump {
				e.stoodStill(late)
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		e.group.Spawn(func(ctx context.Context) {
			defer func() { <-slots }()
			e.expire(ctx, id)
		})
	}
}

// clockSet begins idleness anew for all: what was noted before says nothing about
// how long ago that was. Dates stay dates.
func (e *Engine) clockSet(at time.Time, by time.Duration) {
	e.core.Log.Warn("the host's clock was set, or the host slept; nothing counts as idle before now", "by", by)
	e.fair.Store(&at)
	if by < 0 {
		e.clock.Shift(by) // each is looked at when it would have been
	}
}

// stoodStill begins idleness anew for all: while the server stood still nobody could use
// anything.
func (e *Engine) stoodStill(by time.Duration) {
	at := e.now()
	e.core.Log.Warn("the server stood still; nothing counts as idle before now", "by", by)
	e.fair.Store(&at)
}

// runSweep has the clocks of sandboxes that are down looked at in time.
func (e *Engine) runSweep(ctx context.Context) {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		if err := e.sweep(ctx); err != nil && ctx.Err() == nil {
			e.core.Log.Error("the clocks of stopped sandboxes cannot be read now; it is tried again", "error", err)
		}
		t.Reset(sweepEvery)
	}
}

// sweep sets the alarms of sandboxes that are down and whose time comes soon.
func (e *Engine) sweep(ctx context.Context) error {
	soon := e.now().Add(horizon)
	q := store.SandboxQuery{
		States: []sandbox.State{sandbox.Stopped, sandbox.Archived, sandbox.Failed}, DueBefore: soon, Limit: store.MaxPage, Oldest: true,
	}
	for {
		var page []*sandbox.Sandbox
		err := e.core.Store.View(ctx, func(tx store.Tx) (err error) {
			page, q.Cursor, err = tx.Sandboxes().List(q)
			return err
		})
		if err != nil {
			return err
		}
		for _, s := range page {
			// What memory knows of it is looked at when its alarm comes.
			if at := e.next(s, 0, e.clock.Used(s.ID)); !at.IsZero() && !at.After(soon) {
				e.clock.Set(s.ID, at)
			}
		}
		if q.Cursor == "" {
			return nil
		}
	}
}

// How long a clock waits for a sandbox that a verb is at, and when it comes back.
const (
	turnPatience = 100 * time.Millisecond
	turnRetry    = 2 * time.Second
)

// expire does what is due with a sandbox, and plans its next alarm.
func (e *Engine) expire(ctx context.Context, id sandbox.ID) {
	b, err := e.acquire(ctx, id)
	if fault.Is(err, fault.NotFound) {
		e.expireKept(ctx, id)
		return
	}
	if err != nil {
		e.clock.Set(id, e.now().Add(retryAfter))
		return
	}
	defer e.release(b)
	if ctx.Err() != nil {
		return
	}
	// A verb may have the turn for a while, and few sandboxes are looked at at a time: the
	// clocks of all others must not stand still for it.
	tctx, cancel := context.WithTimeout(ctx, turnPatience)
	own, err := b.take(tctx)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			e.clock.Set(id, e.now().Add(turnRetry))
		}
		return
	}
	defer own.release()
	wctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopBound+deleteBound+e.settings.Load().StopGrace)
	defer cancel()
	if err = e.outcomes.Wait(wctx, b); err == nil {
		err = e.reconcileInstance(wctx, own, finishedLater)
	}
	if l := b.up(); err == nil && (l == nil || l.client.SilentSince().IsZero()) {
		// What has a time to go by goes all the same.
		if err = e.adoptOrphans(wctx, own); errors.Is(err, agent.ErrSilent) {
			err = nil
		}
	}
	if err == nil {
		err = e.expireLocked(wctx, own)
	}
	if err != nil {
		e.core.Log.Error("what a clock or a repair asks for cannot be done now; it is tried again", "sandbox", id, "error", err)
		e.later(b)
		return
	}
	e.plan(b)
}

// expireLocked stops, pauses or deletes the sandbox if that is due. The caller has
// the turn.
func (e *Engine) expireLocked(ctx context.Context, b held) error {
	s, last := b.record.Load(), b.lastUse()
	if s == nil {
		return nil
	}
	due := e.look(s, b.uses(), last).Due()
	var still func(busy int, now activity) bool
	if due.Unused { // asked again in the instant in which uses end: none has come in between
		still = func(busy int, now activity) bool { return busy == 0 && now == last }
	}
	switch due.Action {
	case expiry.Delete:
		return e.reap(ctx, b, due.Cause, due.Detail, still)
	case expiry.DeleteStopped:
		return e.autoDelete(ctx, b)
	case expiry.Idle:
		return e.quiet(ctx, b, s.OnIdle == sandbox.IdlePause, due, still)
	case expiry.Expire:
		return e.quiet(ctx, b, s.OnExpiry == sandbox.ExpiryPause, due, still)
	case expiry.Spend:
		ev := core.System.Event(sandbox.EventUpdated, s, e.now())
		ev.Detail = due.Detail
		return e.commit(ctx, b.entry, func(s *sandbox.Sandbox) { s.ExpiresAt, s.UpdatedAt = time.Time{}, ev.At }, ev)
	}
	if e.archived.Claim(s) {
		e.archiveBehind(b.entry)
	}
	return nil
}

// look is what is known of a sandbox now.
func (e *Engine) look(s *sandbox.Sandbox, busy int, last activity) expiry.Look {
	return expiry.Look{Record: s, Last: last, Busy: busy, Fair: *e.fair.Load(), Now: e.now()}
}

// quiet pauses or stops a sandbox because a clock struck, if may agrees; see stop.
func (e *Engine) quiet(ctx context.Context, b held, pause bool, due expiry.Due, may func(int, activity) bool) error {
	if pause {
		err := e.pause(ctx, b, core.System, due.Cause, sandbox.Clip(due.Detail, sandbox.MaxEventDetail), may)
		if !fault.Is(err, fault.Unsupported) {
			return err
		}
		due.Detail += "; it is stopped, since it cannot be paused: " + core.Reason(err)
	}
	return e.stop(ctx, b, core.System, due.Cause, sandbox.Clip(due.Detail, sandbox.MaxEventDetail), may)
}

// reap deletes a sandbox because a clock struck, if may agrees; see remove.
func (e *Engine) reap(ctx context.Context, b held, cause sandbox.Cause, detail string, may func(int, activity) bool) error {
	err := e.remove(ctx, b, core.System, cause, detail, may)
	if err == nil && b.record.Load() == nil {
		e.core.Metrics.Reaped.Inc()
	}
	return err
}

// plan sets the sandbox's next alarm from its record and its last use.
func (e *Engine) plan(b *entry) {
	s := b.record.Load()
	if s == nil {
		e.clock.Drop(b.id)
		return
	}
	b.mu.Lock()
	busy, last := b.usesLocked(), b.last
	b.mu.Unlock()
	at := e.next(s, busy, last)
	soon := e.now().Add(horizon)
	switch s.State {
	case sandbox.Stopped, sandbox.Archived, sandbox.Failed:
		if at.After(soon) {
			at = time.Time{} // a sweep finds it in time
		}
	default:
		if l := b.standing(); l != nil && (l.unfit || l.gate.Differs(e.settings.Load().Network.Bounded(s.Network)) || e.sudoDiffers(l, s) && !l.sudo.Fresh()) {
			at = expiry.Earlier(at, e.now().Add(retryAfter))
		}
	}
	e.clock.Set(b.id, at)
}

// next is when to look at a sandbox again, as far as is known by now. Zero: never.
func (e *Engine) next(s *sandbox.Sandbox, busy int, last activity) time.Time {
	if s.State.Intent() {
		return e.now().Add(retryAfter)
	}
	return e.look(s, busy, last).Next(e.archived.Due(s))
}

// later has the clock look at a sandbox whose last verb could not be finished.
func (e *Engine) later(b *entry) { e.retry(b.id) }

// retry is later for whatever has an id: a snapshot or a volume, too.
func (e *Engine) retry(id sandbox.ID) { e.clock.Set(id, e.now().Add(retryAfter)) }

// now is the time as the store keeps it, so that a record reads the same before
// and after it was stored.
func (e *Engine) now() time.Time { return e.wall().UTC().Truncate(time.Microsecond) }
