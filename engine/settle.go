// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// settle finishes or undoes what an earlier verb, of this server or of one
// before, left halfway. After it the sandbox is Running and up, Stopped, or
// gone. The caller has the turn. why is for the events.
func (e *Engine) settle(ctx context.Context, b *box, why string) error {
	if err := e.refresh(ctx, b); err != nil {
		return err
	}
	s := b.record.Load()
	if s == nil {
		return nil
	}
	switch s.State {
	case sandbox.Creating:
		return e.undoCreate(ctx, b, why)
	case sandbox.Starting:
		return e.undoStart(ctx, b, why)
	case sandbox.Stopping:
		return e.finishStop(ctx, b, why)
	case sandbox.Deleting:
		return e.finishDelete(ctx, b, why)
	case sandbox.Running:
		if b.up() == nil {
			return e.recover(ctx, b)
		}
	}
	return nil
}

// refresh reads the record anew after a commit that failed.
func (e *Engine) refresh(ctx context.Context, b *box) error {
	b.commitMu.Lock()
	defer b.commitMu.Unlock()
	if !b.stale {
		return nil
	}
	s, err := e.stored(ctx, b.id)
	switch {
	case err == nil:
		old := b.record.Load()
		e.settleRecord(b, s)
		if old != nil {
			e.metrics.moved(old.State, s.State)
		}
	case fault.Is(err, fault.NotFound):
		e.forget(b)
	default:
		return err
	}
	b.stale = false
	return nil
}

func (e *Engine) undoCreate(ctx context.Context, b *box, why string) error {
	s := b.record.Load()
	if err := e.gone(ctx, s); err != nil {
		return e.unsettled(b, err)
	}
	ev := system.event(sandbox.EventFailed, s, now())
	ev.OK, ev.Detail = false, "create: undone; "+why
	if err := e.erase(ctx, b, ev); err != nil {
		return e.unsettled(b, err)
	}
	return nil
}

func (e *Engine) undoStart(ctx context.Context, b *box, why string) error {
	s := b.record.Load()
	if err := e.down(ctx, s); err != nil {
		return e.unsettled(b, err)
	}
	ev := system.event(sandbox.EventFailed, s, now())
	ev.OK, ev.Detail = false, "start: undone; "+why
	err := e.commit(ctx, b, func(s *sandbox.Sandbox) {
		// Why it was stopped before the start still holds, and with it whether
		// it starts by itself.
		s.State, s.UpdatedAt = sandbox.Stopped, ev.At
	}, ev)
	if err != nil {
		return e.unsettled(b, err)
	}
	e.plan(b)
	return nil
}

func (e *Engine) finishStop(ctx context.Context, b *box, why string) error {
	s := b.record.Load()
	if err := e.down(ctx, s); err != nil {
		return e.unsettled(b, err)
	}
	ev := system.event(sandbox.EventStopped, s, now())
	ev.Cause, ev.Detail = s.StopCause, s.StopDetail+"; "+why
	err := e.commit(ctx, b, func(s *sandbox.Sandbox) {
		s.State, s.StoppedAt, s.UpdatedAt = sandbox.Stopped, ev.At, ev.At
	}, ev)
	if err != nil {
		return e.unsettled(b, err)
	}
	e.plan(b)
	return nil
}

func (e *Engine) finishDelete(ctx context.Context, b *box, why string) error {
	s := b.record.Load()
	if err := e.gone(ctx, s); err != nil {
		return e.unsettled(b, err)
	}
	ev := system.event(sandbox.EventDeleted, s, now())
	ev.Cause, ev.Detail = s.StopCause, s.StopDetail+"; "+why
	if err := e.erase(ctx, b, ev); err != nil {
		return e.unsettled(b, err)
	}
	return nil
}

// recover finds a running sandbox again, or records that it is down.
func (e *Engine) recover(ctx context.Context, b *box) error {
	s := b.record.Load()
	inst, err := e.open(ctx, s)
	if fault.Is(err, fault.NotFound) {
		return e.lost(ctx, b, sandbox.CauseHost, "its disk is gone from this host")
	}
	if err != nil {
		return e.unsettled(b, err)
	}
	img, err := e.images.FindDigest(s.Image, s.ImageDigest)
	if err != nil {
		// It runs on what it has; only the image's own variables are missed.
		e.log.Warn("the image of a running sandbox is not found", "sandbox", b.id, "image", s.Image, "error", err)
	}
	l := e.newLive(b, inst, img)
	err = e.ping(ctx, l)
	if err == nil {
		e.raise(b, l)
		return nil
	}
	if fault.Is(err, fault.State) {
		exit, waitErr := inst.Wait(ctx)
		if waitErr != nil {
			return e.unsettled(b, waitErr)
		}
		if stopErr := inst.Stop(ctx, 0); stopErr != nil {
			e.log.Warn("what is left of a sandbox that went down cannot be freed", "sandbox", b.id, "error", stopErr)
		}
		if err := e.wentDown(ctx, b, exit); err != nil {
			return e.unsettled(b, err)
		}
		return nil
	}
	if ctx.Err() != nil {
		return e.unsettled(b, err)
	}
	e.log.Error("the agent of a running sandbox does not answer; the sandbox is stopped", "sandbox", b.id, "error", err)
	if err := inst.Stop(ctx, 0); err != nil {
		return e.unsettled(b, err)
	}
	return e.lost(ctx, b, sandbox.CauseHost, "its agent did not answer")
}

func (e *Engine) lost(ctx context.Context, b *box, cause sandbox.Cause, detail string) error {
	s := b.record.Load()
	ev := system.event(sandbox.EventStopped, s, now())
	ev.Cause, ev.Detail = cause, detail
	err := e.commit(ctx, b, func(s *sandbox.Sandbox) {
		s.State, s.StopCause, s.StopDetail = sandbox.Stopped, cause, detail
		s.StoppedAt, s.UpdatedAt = ev.At, ev.At
	}, ev)
	if err != nil {
		return e.unsettled(b, err)
	}
	e.plan(b)
	return nil
}

// pingTries bounds how often an agent is asked for a sign of life before its
// sandbox counts as lost; a host that is just coming up may be slow.
const (
	pingTries = 3
	pingBound = 5 * time.Second
)

func (e *Engine) ping(ctx context.Context, l *live) (err error) {
	for range pingTries {
		one, cancel := context.WithTimeout(ctx, pingBound)
		_, err = l.client.Ping(one)
		cancel()
		if err == nil || fault.Is(err, fault.State) || ctx.Err() != nil {
			return err
		}
	}
	return err
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

// unsettled has the clock try again, and says so.
func (e *Engine) unsettled(b *box, err error) error {
	e.later(b)
	s := b.record.Load()
	if s == nil {
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "the sandbox %s is %s, and that cannot be finished now", b.id, s.State).
		WithRemedy("the server goes on trying; ask again in a while")
}
