// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"strings"

	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// reconcile finishes or undoes what an earlier verb, of this server or of one
// before, left halfway. After it the sandbox is Running and up, Paused and frozen,
// Stopped, Failed, or gone. why is for the events.
func (e *Engine) reconcile(ctx context.Context, b held, why string) error {
	if err := e.reconcileInstance(ctx, b, why); err != nil {
		return err
	}
	return e.adoptOrphans(ctx, b)
}

// reconcileInstance is reconcile for who needs to know nothing of the sandbox's commands: it asks
// the agent for nothing.
func (e *Engine) reconcileInstance(ctx context.Context, b held, why string) error {
	if err := e.refresh(ctx, b.entry); err != nil {
		return err
	}
	if err := e.reconcileState(ctx, b, why); err != nil {
		return err
	}
	if l, s := b.standing(), b.record.Load(); l != nil && s != nil {
		if l.unfit {
			e.fit(ctx, b, l)
		}
		if l.gate.Differs(e.settings.Load().Network.Bounded(s.Network)) {
			e.reopenNetwork(ctx, b, l)
		}
		e.retellSudo(b, l)
	}
	return nil
}

func (e *Engine) reconcileState(ctx context.Context, b held, why string) error {
	s := b.record.Load()
	if s == nil {
		return nil
	}
	switch s.State {
	case sandbox.Creating:
		if s.ImageDigest == "" {
			return e.unmade(ctx, b)
		}
		return e.undoCreate(ctx, b, why)
	case sandbox.Starting:
		return e.undoStart(ctx, b, why)
	case sandbox.Pausing:
		return e.goOn(ctx, b, failure(core.System, "pause: undone; "+why))
	case sandbox.Resuming:
		return e.goOn(ctx, b, func(s *sandbox.Sandbox) *sandbox.Event {
			ev := core.System.Event(sandbox.EventResumed, s, s.UpdatedAt)
			ev.Detail = why
			return ev
		})
	case sandbox.Archiving, sandbox.Unarchiving:
		return e.reconcileArchive(ctx, b, why)
	case sandbox.Stopping:
		return e.finishStop(ctx, b, why)
	case sandbox.Restoring:
		return e.finishRestore(ctx, b, why)
	case sandbox.Deleting:
		return e.finishDelete(ctx, b, why)
	case sandbox.Running:
		if b.standing() == nil {
			return e.recover(ctx, b)
		}
	case sandbox.Paused:
		if b.standing() == nil {
			return e.recoverPaused(ctx, b)
		}
	case sandbox.Failed:
		return e.reconcileFailed(ctx, b)
	}
	return nil
}

// reconcileFailed looks whether what a sandbox misses is there again.
func (e *Engine) reconcileFailed(ctx context.Context, b held) error {
	err := e.mend(ctx, b)
	if _, still := errors.AsType[*missing](err); still {
		return nil
	}
	if err != nil {
		return e.notReconciled(b.entry, err)
	}
	return nil
}

// refresh reads the record anew after a commit that failed.
func (e *Engine) refresh(ctx context.Context, b *entry) error {
	b.commitMu.Lock()
	defer b.commitMu.Unlock()
	if !b.stale {
		return nil
	}
	s, err := e.stored(ctx, b.id)
	switch {
	case err == nil:
		old := b.record.Load()
		e.cacheRecord(b, s)
		if old != nil {
			e.core.Metrics.Moved(old.State, s.State)
		}
	case fault.Is(err, fault.NotFound):
		e.forget(b)
	default:
		return err
	}
	b.stale = false
	return nil
}

func (e *Engine) undoCreate(ctx context.Context, b held, why string) error {
	s := b.record.Load()
	if err := e.gone(ctx, s); err != nil {
		return e.notReconciled(b.entry, err)
	}
	ev := core.System.Event(sandbox.EventFailed, s, e.now())
	ev.OK, ev.Detail = false, "create: undone; "+why
	if err := e.erase(ctx, b.entry, ev); err != nil {
		return e.notReconciled(b.entry, err)
	}
	return nil
}

func (e *Engine) undoStart(ctx context.Context, b held, why string) error {
	s := b.record.Load()
	if err := e.down(ctx, s); err != nil {
		return e.notReconciled(b.entry, err)
	}
	ev := core.System.Event(sandbox.EventFailed, s, e.now())
	ev.OK, ev.Detail = false, "start: undone; "+why
	err := e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
		// Why it was stopped before the start still holds, and with it whether
		// it starts by itself.
		s.State, s.UpdatedAt = sandbox.Stopped, ev.At
	}, ev)
	if err != nil {
		return e.notReconciled(b.entry, err)
	}
	e.plan(b.entry)
	return nil
}

func (e *Engine) finishStop(ctx context.Context, b held, why string) error {
	s := b.record.Load()
	if err := e.down(ctx, s); err != nil {
		return e.notReconciled(b.entry, err)
	}
	ev := core.System.Event(sandbox.EventStopped, s, e.now())
	ev.Cause, ev.Detail = s.StopCause, s.StopDetail+"; "+why
	err := e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.State, s.StoppedAt, s.UpdatedAt = sandbox.Stopped, ev.At, ev.At
	}, ev)
	if err != nil {
		return e.notReconciled(b.entry, err)
	}
	e.plan(b.entry)
	return nil
}

func (e *Engine) finishDelete(ctx context.Context, b held, why string) error {
	s := b.record.Load()
	if err := e.gone(ctx, s); err != nil {
		return e.notReconciled(b.entry, err)
	}
	ev := core.System.Event(sandbox.EventDeleted, s, e.now())
	ev.Cause, ev.Detail = s.StopCause, s.StopDetail+"; "+why
	if err := e.erase(ctx, b.entry, ev); err != nil {
		return e.notReconciled(b.entry, err)
	}
	return nil
}

// recover finds a running sandbox again, or records that it is down.
func (e *Engine) recover(ctx context.Context, b held) error {
	l, err := e.reopen(ctx, b)
	if l == nil {
		return err
	}
	if p, ok := l.inst.(runtime.Pauser); ok && p.Paused() {
		if err := p.Resume(ctx); err != nil { // down ones are seen next
			e.core.Log.Warn("a running sandbox is frozen, and cannot be resumed", "sandbox", b.id, "error", err)
		}
	}
	if down, err := e.fallen(ctx, b, l); down {
		return err
	}
	e.fit(ctx, b, l)
	e.beginSession(b, l)
	return nil
}

// recoverPaused finds a paused sandbox again, frozen, or records that it is down.
func (e *Engine) recoverPaused(ctx context.Context, b held) error {
	l, err := e.reopen(ctx, b)
	if l == nil {
		return err
	}
	p, ok := l.inst.(runtime.Pauser)
	if !ok {
		return e.notReconciled(b.entry, fault.New(fault.Unsupported, "its runtime cannot pause it any more"))
	}
	if !p.Paused() { // somebody else has resumed it, or it is down
		if err := p.Pause(ctx); fault.Is(err, fault.State) {
			return e.found(ctx, b, l)
		} else if err != nil {
			return e.notReconciled(b.entry, err)
		}
	}
	l.pauses.Begin()
	l.unheard.Store(true)
	e.fit(ctx, b, l)
	e.beginSession(b, l)
	return nil
}

// goOn lets the processes of a sandbox go on that was being paused or resumed, and
// commits the event of it.
func (e *Engine) goOn(ctx context.Context, b held, event func(*sandbox.Sandbox) *sandbox.Event) error {
	l := b.standing()
	known := l != nil
	if !known {
		var err error
		if l, err = e.reopen(ctx, b); l == nil {
			return err
		}
	}
	var err error
	if p, ok := l.inst.(runtime.Pauser); ok {
		err = p.Resume(ctx)
	}
	switch {
	case fault.Is(err, fault.State) && known:
		select {
		case <-l.down:
			e.sessionEnded(ctx, b, l)
			return nil
		case <-ctx.Done():
			return e.notReconciled(b.entry, ctx.Err())
		}
	case fault.Is(err, fault.State):
		return e.found(ctx, b, l)
	case err != nil:
		return e.notReconciled(b.entry, err)
	}
	if !known {
		if down, err := e.fallen(ctx, b, l); down {
			return err
		}
		e.fit(ctx, b, l)
	}
	if err := e.awoken(ctx, b.entry, event); err != nil {
		return e.notReconciled(b.entry, err)
	}
	l.pauses.End()
	if known {
		e.restore(ctx, b, l)
		e.plan(b.entry)
	} else {
		e.beginSession(b, l)
	}
	return nil
}

// reopen finds the instance of a sandbox that is to be up. Without one the sandbox has
// failed, or the error says why that is not known.
func (e *Engine) reopen(ctx context.Context, b held) (*session, error) {
	s := b.record.Load()
	inst, err := e.open(ctx, s)
	if fault.Is(err, fault.NotFound) {
		if err := e.fail(ctx, b, diskGone(err)); err != nil {
			return nil, e.notReconciled(b.entry, err)
		}
		return nil, nil
	}
	if err != nil {
		return nil, e.notReconciled(b.entry, err)
	}
	img, err := e.images.FindDigest(s.Image, s.ImageDigest)
	if err != nil {
		// It runs on what it has; only the image's own variables are missed.
		e.core.Log.Warn("the image of a running sandbox is not found", "sandbox", b.id, "image", s.Image, "error", err)
	}
	l := e.newLive(b.entry, inst, img)
	l.sudo.Forget() // an earlier server told its agent
	return l, nil
}

// fallen reports whether an instance that was found again is down, and if so has that
// recorded. One that is up is there, whether or not its agent answers.
func (e *Engine) fallen(ctx context.Context, b held, l *session) (bool, error) {
	now, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := l.inst.Wait(now); err != nil {
		l.unheard.Store(true)
		return false, nil
	}
	return true, e.found(ctx, b, l)
}

// found records that a sandbox was found down, and why.
func (e *Engine) found(ctx context.Context, b held, l *session) error {
	exit, err := l.inst.Wait(ctx)
	if err != nil {
		return e.notReconciled(b.entry, err)
	}
	if err := l.inst.Stop(ctx, 0); err != nil {
		e.core.Log.Warn("what is left of a sandbox that went down cannot be freed", "sandbox", b.id, "error", err)
	}
	// Nobody saw when. What it did not run for sure is not counted.
	s := b.record.Load()
	if s.State == sandbox.Paused {
		exit.Detail = strings.TrimPrefix(exit.Detail+"; it was paused", "; ")
	}
	if err := e.wentDown(ctx, b, exit, later(s.LastActivity, s.UpdatedAt)); err != nil {
		return e.notReconciled(b.entry, err)
	}
	return nil
}

// fit makes the record's limits those of an instance that is up, where a crash may
// have come between the two. What does not work now is tried again.
func (e *Engine) fit(ctx context.Context, b held, l *session) {
	l.unfit = false
	s := b.record.Load()
	err := l.setHostname(ctx, s)
	if r, ok := l.inst.(runtime.Resizer); ok && err == nil {
		err = r.Resize(ctx, s.Limits)
	}
	if err == nil || fault.Is(err, fault.Unsupported) || fault.Is(err, fault.State) {
		return
	}
	l.unfit = true
	e.core.Log.Warn("the limits and the host name of a sandbox cannot be set again now; it is tried again", "sandbox", b.id, "error", err)
	e.plan(b.entry)
}

// setHostname has what is up bear the name of its record, where its runtime can do so.
func (l *session) setHostname(ctx context.Context, s *sandbox.Sandbox) error {
	if n, ok := l.inst.(runtime.Namer); ok {
		return n.SetHostname(ctx, s.Hostname())
	}
	return nil
}

// down takes the instance of a record down; one that is gone is down.
func (e *Engine) down(ctx context.Context, s *sandbox.Sandbox) error {
	inst, err := e.open(ctx, s)
	if err == nil {
		err = inst.Stop(ctx, 0)
	}
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// gone removes the instance of a record.
func (e *Engine) gone(ctx context.Context, s *sandbox.Sandbox) error {
	inst, err := e.open(ctx, s)
	if err == nil {
		err = inst.Remove(ctx)
	}
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// notReconciled has the clock try again, and says so.
func (e *Engine) notReconciled(b *entry, err error) error {
	e.later(b)
	s := b.record.Load()
	if s == nil {
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "the sandbox %s is %s, and that cannot be finished now", b.id, s.State).
		WithRemedy("the server goes on trying; ask again in a while")
}
