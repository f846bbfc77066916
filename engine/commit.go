// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/engine/core"
	"sandpit.dev/engine/rows"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// commit changes the entry's record and appends events, in one transaction.
// change gets a copy of the record; maps in it are replaced, never written to.
// A record that was deleted meanwhile is left alone and the events still count.
func (e *Engine) commit(ctx context.Context, b *entry, change func(*sandbox.Sandbox), events ...*sandbox.Event) error {
	return e.commitBy(ctx, b, store.Sandboxes.Update, change, func(tx store.Tx) error { return core.AppendAll(tx, events) }, events...)
}

// commitWith is commit with more to do in the transaction. Events are those
// that more appends, for the figures.
func (e *Engine) commitWith(ctx context.Context, b *entry, change func(*sandbox.Sandbox), more func(store.Tx) error, events ...*sandbox.Event) error {
	return e.commitBy(ctx, b, store.Sandboxes.Update, change, more, events...)
}

// tally is commitWith for a change of the record's figures alone, see [store.Sandboxes].
func (e *Engine) tally(ctx context.Context, b *entry, change func(*sandbox.Sandbox), more func(store.Tx) error, events ...*sandbox.Event) error {
	return e.commitBy(ctx, b, store.Sandboxes.Tally, change, more, events...)
}

func (e *Engine) commitBy(ctx context.Context, b *entry, write func(store.Sandboxes, *sandbox.Sandbox) error, change func(*sandbox.Sandbox), more func(store.Tx) error, events ...*sandbox.Event) error {
	b.commitMu.Lock()
	defer b.commitMu.Unlock()
	defer b.committing.Store(false)
	last := b.lastUse()

	var from, to *sandbox.Sandbox
	err := e.core.Store.Update(ctx, func(tx store.Tx) error {
		from, to = b.record.Load(), nil
		if from != nil && b.stale {
			s, err := tx.Sandboxes().Get(b.id)
			if err != nil {
				return err
			}
			from = s
		}
		if from != nil {
			next := *e.settings.Load().Kept(from)
			change(&next)
			if next.State != from.State && !from.State.CanBecome(next.State) {
				return fault.New(fault.Internal, "sandbox %s cannot become %s from %s", b.id, next.State, from.State)
			}
			if !last.At.IsZero() {
				next.LastActivity = last.At
			}
			next.RunMeter(from.State)
			next.SpendExpiry(from.State)
			if err := write(tx.Sandboxes(), &next); err != nil {
				return err
			}
			to = &next
		}
		if err := more(tx); err != nil {
			return err
		}
		b.committing.Store(true)
		return nil
	})
	if err != nil {
		b.stale = true
		return err
	}
	b.stale = false
	if to != nil {
		e.setRecord(b, to)
		e.core.Metrics.Moved(from.State, to.State)
	}
	e.core.Metrics.Happened(events)
	return nil
}

// insert adds a new record and its secrets, with their first events.
func (e *Engine) insert(ctx context.Context, b *entry, s *sandbox.Sandbox, own []secrets.Secret, who core.Actor, ev *sandbox.Event) error {
	b.commitMu.Lock()
	defer b.commitMu.Unlock()
	b.secrets.Fill(own)
	var events []*sandbox.Event
	err := e.core.Store.Update(ctx, func(tx store.Tx) (err error) {
		if err := volume.Mountable(tx, s.Project, s.Mounts); err != nil {
			return err
		}
		if err := tx.Sandboxes().Insert(s); err != nil {
			return err
		}
		if err := tx.Events().Append(ev); err != nil {
			return err
		}
		events, err = e.secrets.PutAll(tx, own, who)
		return err
	})
	if err != nil {
		return err
	}
	e.cacheRecord(b, s)
	e.core.Metrics.Moved("", s.State)
	e.core.Metrics.Happened(append(events, ev))
	return nil
}

// erase deletes the record with its last event, completes the rows of commands
// that were cut off, and has the snapshots deleted that go with the sandbox.
func (e *Engine) erase(ctx context.Context, b *entry, ev *sandbox.Event) error {
	b.commitMu.Lock()
	defer b.commitMu.Unlock()
	s := b.record.Load()
	if s == nil {
		return nil
	}
	var left []*sandbox.Snapshot
	var dropped int
	err := e.core.Store.Update(ctx, func(tx store.Tx) (err error) {
		if left, err = snapshot.Leave(tx, s); err != nil {
			return err
		}
		if err := rows.FinishAll(tx, b.id, sandbox.CauseStopped, "its sandbox was deleted", ev.At); err != nil {
			return err
		}
		if err := tx.Sandboxes().Delete(b.id); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		if ev.Cause == sandbox.CauseUser { // a clock's delete leaves what runs made
			if dropped, err = tx.Runs().Drop(b.id, ev.At); err != nil {
				return err
			}
		}
		return tx.Events().Append(ev)
	})
	if err != nil {
		b.stale = true
		return err
	}
	e.forget(b)
	e.core.Holds.Unpin(b.id)
	if dropped > 0 {
		select {
		case e.runsDropped <- struct{}{}:
		default:
		}
	}
	e.core.Metrics.Happened([]*sandbox.Event{ev})
	if s.Archive.ID != "" {
		e.archived.SweepBehind()
	}
	if len(left) > 0 {
		e.group.Spawn(func(ctx context.Context) { e.snapshots.DiscardAll(ctx, left, core.Actor{Name: ev.Actor, Via: ev.Via}) })
	}
	return nil
}
