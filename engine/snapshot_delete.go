// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

const (
	// discardBound bounds the deletion of one snapshot.
	discardBound = 2 * time.Minute
	// holdPatience is how long a deletion waits for those who use the snapshot.
	holdPatience = 10 * time.Second
)

// DeleteSnapshot deletes one, named as for Snapshot. What was made of it stays. It
// waits for whoever uses it, and is fault.Conflict when that takes long.
func (e *Engine) DeleteSnapshot(ctx context.Context, c access.Caller, of, snap string) error {
	if err := e.enter(c, access.SandboxesWrite); err != nil {
		return err
	}
	defer e.group.leave()
	found, err := e.findSnapshot(ctx, c.Project, of, snap)
	if err != nil {
		return err
	}
	who := core.ActorOf(c)
	return e.work(ctx, holdPatience+discardBound, func(ctx context.Context) error {
		give, err := e.holds.OwnSoon(ctx, found.ID)
		if err != nil {
			return err
		}
		defer give()
		why := who.Did("deleted")
		err = e.store.Update(ctx, func(tx store.Tx) error {
			one, err := snapshotByRef(tx, c.Project, "", string(found.ID))
			if err != nil {
				return err
			}
			found = one
			return markDeleting(tx, one, why)
		})
		if err != nil {
			return err
		}
		e.checkpoint("unsnapshot.intent")
		if err := e.discard(ctx, found, who); err != nil {
			e.retry(found.ID)
			return fault.Wrap(fault.Unavailable, err, "the snapshot %s cannot be deleted now", found.ID).
				WithRemedy("the server goes on trying; ask again in a while")
		}
		return nil
	}, nil)
}

// markDeleting writes the intent of a deletion. From then on the snapshot is in no
// list, and its name is free; both are in its Detail, for the event.
func markDeleting(tx store.Tx, snap *sandbox.Snapshot, why string) error {
	snap.Detail = sandbox.Clip(describe(snap)+"; "+why, sandbox.MaxEventDetail)
	snap.Name, snap.State = "", sandbox.SnapshotDeleting
	return tx.Snapshots().Update(snap)
}

// discard finishes a deletion. The caller has the snapshot alone.
func (e *Engine) discard(ctx context.Context, snap *sandbox.Snapshot, who core.Actor) error {
	ev := snapshotEvent(who, sandbox.EventSnapshotDeleted, snap, e.now(), "")
	ev.Detail = snap.Detail
	return e.eraseSnapshot(ctx, snap, ev)
}

// eraseSnapshot removes a snapshot: the driver's half, then the record, with an
// event (nil: none). The caller has it alone.
func (e *Engine) eraseSnapshot(ctx context.Context, snap *sandbox.Snapshot, ev *sandbox.Event) error {
	d, err := core.Driver[runtime.Snapshotter](e.core, snap.Runtime, "snapshots")
	if err != nil {
		return err
	}
	if err := d.RemoveSnapshot(ctx, snap.ID); err != nil {
		return err
	}
	e.checkpoint("unsnapshot.done")
	if err := e.core.Unlist(ctx, func(tx store.Tx) error { return tx.Snapshots().Delete(snap.ID) }, ev); err != nil {
		return err
	}
	e.checkpoint("unsnapshot.outcome")
	return nil
}

// discardAll finishes deletions that nobody waits for, one after the other. What
// is in use, or fails, is tried again later.
func (e *Engine) discardAll(ctx context.Context, snaps []*sandbox.Snapshot, who core.Actor) {
	for _, snap := range snaps {
		if ctx.Err() != nil {
			return // they are marked, and the next server goes on
		}
		if err := e.discardOne(ctx, snap, who); err != nil {
			e.log.Warn("a snapshot of no more use cannot be deleted now; it is tried again", "snapshot", snap.ID, "error", err)
			e.retry(snap.ID)
		}
	}
}

func (e *Engine) discardOne(ctx context.Context, snap *sandbox.Snapshot, who core.Actor) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardBound)
	defer cancel()
	give, err := e.holds.OwnSoon(ctx, snap.ID)
	if err != nil {
		return err
	}
	defer give()
	return e.discard(ctx, snap, who)
}

// leaveSnapshots marks what goes with a sandbox that is deleted: its snapshots
// without a name, and checkpoints.
func leaveSnapshots(tx store.Tx, of *sandbox.Sandbox) ([]*sandbox.Snapshot, error) {
	named := false
	q := store.SnapshotQuery{
		Project: of.Project, Sandbox: of.ID, Named: &named,
		States: []sandbox.SnapshotState{sandbox.SnapshotReady}, Limit: store.MaxPage, Oldest: true,
	}
	var gone []*sandbox.Snapshot
	for {
		page, next, err := tx.Snapshots().List(q)
		if err != nil {
			return nil, err
		}
		gone = append(gone, page...)
		if next == "" {
			break
		}
		q.Cursor = next
	}
	for _, snap := range gone {
		if err := markDeleting(tx, snap, "deleted with its sandbox"); err != nil {
			return nil, err
		}
	}
	return gone, nil
}
