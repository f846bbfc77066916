// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// commit changes the box's record and appends events, in one transaction.
// change gets a copy of the record; maps in it are replaced, never written to.
// A record that was deleted meanwhile is left alone and the events still count.
func (e *Engine) commit(ctx context.Context, b *box, change func(*sandbox.Sandbox), events ...*sandbox.Event) error {
	return e.commitWith(ctx, b, change, func(tx store.Tx) error { return appendAll(tx, events) }, events...)
}

func appendAll(tx store.Tx, events []*sandbox.Event) error {
	for _, ev := range events {
		if err := tx.Events().Append(ev); err != nil {
			return err
		}
	}
	return nil
}

// commitWith is commit with more to do in the transaction. Events are those
// that more appends, for the figures.
func (e *Engine) commitWith(ctx context.Context, b *box, change func(*sandbox.Sandbox), more func(store.Tx) error, events ...*sandbox.Event) error {
	b.commitMu.Lock()
	defer b.commitMu.Unlock()
	b.mu.Lock()
	last := b.last
	b.mu.Unlock()

	var from, to *sandbox.Sandbox
	err := e.store.Update(ctx, func(tx store.Tx) error {
		from, to = b.record.Load(), nil
		if from != nil && b.stale {
			s, err := tx.Sandboxes().Get(b.id)
			if err != nil {
				return err
			}
			from = s
		}
		if from != nil {
			next := *from
			change(&next)
			if next.State != from.State && !from.State.CanBecome(next.State) {
				return fault.New(fault.Internal, "sandbox %s cannot become %s from %s", b.id, next.State, from.State)
			}
			next.LastActivity = later(next.LastActivity, last)
			if err := tx.Sandboxes().Update(&next); err != nil {
				return err
			}
			to = &next
		}
		return more(tx)
	})
	if err != nil {
		b.stale = true
		return err
	}
	b.stale = false
	if to != nil {
		b.record.Store(to)
		e.metrics.moved(from.State, to.State)
	}
	e.metrics.happened(events)
	return nil
}

// insert adds a new record with its first event.
func (e *Engine) insert(ctx context.Context, b *box, s *sandbox.Sandbox, ev *sandbox.Event) error {
	b.commitMu.Lock()
	defer b.commitMu.Unlock()
	err := e.store.Update(ctx, func(tx store.Tx) error {
		if err := tx.Sandboxes().Insert(s); err != nil {
			return err
		}
		return tx.Events().Append(ev)
	})
	if err != nil {
		return err
	}
	e.settleRecord(b, s)
	e.metrics.moved("", s.State)
	e.metrics.happened([]*sandbox.Event{ev})
	return nil
}

// erase deletes the record with its last event, and completes the rows of
// commands that were cut off.
func (e *Engine) erase(ctx context.Context, b *box, ev *sandbox.Event) error {
	b.commitMu.Lock()
	defer b.commitMu.Unlock()
	if b.record.Load() == nil {
		return nil
	}
	err := e.store.Update(ctx, func(tx store.Tx) error {
		if err := finishAll(tx, b.id, sandbox.CauseStopped, "its sandbox was deleted", ev.At); err != nil {
			return err
		}
		if err := tx.Sandboxes().Delete(b.id); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		return tx.Events().Append(ev)
	})
	if err != nil {
		b.stale = true
		return err
	}
	e.forget(b)
	e.metrics.happened([]*sandbox.Event{ev})
	return nil
}

// finishAll completes every unfinished row of a sandbox with one cause.
func finishAll(tx store.Tx, id sandbox.ID, cause sandbox.Cause, detail string, at time.Time) error {
	rows, err := tx.Events().Unfinished(id)
	if err != nil {
		return err
	}
	for _, ev := range rows {
		cutOff(ev, cause, detail, at)
		if err := tx.Events().Finish(ev); err != nil {
			return err
		}
	}
	return nil
}

// cutOff completes a command's row without a result of its own.
func cutOff(ev *sandbox.Event, cause sandbox.Cause, detail string, at time.Time) {
	ev.Done, ev.OK = true, false
	ev.ExitCode, ev.Signal, ev.Cause, ev.Detail = exitKilled, "SIGKILL", cause, detail
	ev.Duration = max(at.Sub(ev.At), 0)
}

// exitKilled is the exit code of a command that SIGKILL ended.
const exitKilled = 128 + 9

// asker is who an event names.
type asker struct{ actor, via string }

func askerOf(c access.Caller) asker {
	a := asker{c.Actor, c.Via}
	if a.actor == "" {
		a.actor = "unknown"
	}
	return a
}

// system is the engine itself: a clock, a watcher, a repair.
var system = asker{"system", "system"}

func (a asker) event(t sandbox.EventType, s *sandbox.Sandbox, at time.Time) *sandbox.Event {
	return &sandbox.Event{
		Sandbox: s.ID, Project: s.Project, Type: t, At: at, Actor: a.actor, Via: a.via, Done: true, OK: true,
	}
}

// reason is the text of an error for an event: what the caller may see of it.
func reason(err error) string { return sandbox.Clip(fault.As(err).Message, maxDetail) }

const maxDetail = 1024
