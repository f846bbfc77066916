// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"time"

	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

const (
	// deleteBound bounds the deletion of one snapshot.
	deleteBound = 2 * time.Minute
	// Patience is how long a deletion waits for those who use the snapshot.
	Patience = 10 * time.Second
	// Bound bounds Delete.
	Bound = Patience + deleteBound
)

// Delete deletes one that was found. What was made of it stays. It waits for whoever uses it, and
// is fault.Conflict when that takes long.
func (k *Keeper) Delete(ctx context.Context, found *sandbox.Snapshot, who core.Actor) error {
	give, err := k.core.Holds.OwnSoon(ctx, found.ID)
	if err != nil {
		return err
	}
	defer give()
	var snap *sandbox.Snapshot
	err = k.core.Store.Update(ctx, func(tx store.Tx) (err error) {
		if snap, err = byRef(tx, found.Project, "", string(found.ID)); err != nil {
			return err
		}
		return markDeleting(tx, snap, who.Did("deleted"))
	})
	if err != nil {
		return err
	}
	k.core.Checkpoint("unsnapshot.intent")
	if err := k.discard(ctx, snap, who); err != nil {
		k.core.Retry(snap.ID)
		return fault.Wrap(fault.Unavailable, err, "the snapshot %s cannot be deleted now", snap.ID).
			WithRemedy("the server goes on trying; ask again in a while")
	}
	return nil
}

// markDeleting writes the intent of a deletion. From then on the snapshot is in no
// list, and its name is free; both are in its Detail, for the event.
func markDeleting(tx store.Tx, snap *sandbox.Snapshot, why string) error {
	snap.Detail = sandbox.Clip(Describe(snap)+"; "+why, sandbox.MaxEventDetail)
	snap.Name, snap.State = "", sandbox.SnapshotDeleting
	return tx.Snapshots().Update(snap)
}

// discard finishes a deletion. The caller has the snapshot alone.
func (k *Keeper) discard(ctx context.Context, snap *sandbox.Snapshot, who core.Actor) error {
	ev := k.event(sandbox.EventSnapshotDeleted, snap, who, "")
	ev.Detail = snap.Detail
	return k.erase(ctx, snap, ev)
}

// erase removes a snapshot: the driver's half, then the record, with an
// event (nil: none). The caller has it alone.
func (k *Keeper) erase(ctx context.Context, snap *sandbox.Snapshot, ev *sandbox.Event) error {
	d, err := k.Driver(snap.Runtime)
	if err != nil {
		return err
	}
	if err := d.RemoveSnapshot(ctx, snap.ID); err != nil {
		return err
	}
	k.core.Checkpoint("unsnapshot.done")
	if err := k.core.Unlist(ctx, func(tx store.Tx) error { return forget(tx, snap.ID) }, ev); err != nil {
		return err
	}
	k.core.Checkpoint("unsnapshot.outcome")
	return nil
}

// forget removes a record. Its archive is nobody's then, and a sweep removes it.
func forget(tx store.Tx, id sandbox.ID) error {
	snap, err := tx.Snapshots().Get(id) // it may have been archived since it was marked
	if err != nil {
		return err
	}
	if snap.Archive.ID != "" {
		if err := tx.UnownedArchives().Put(store.UnownedArchive{ID: snap.Archive.ID, Sandbox: snap.ID}); err != nil {
			return err
		}
	}
	return tx.Snapshots().Delete(id)
}

// DiscardAll finishes deletions that nobody waits for, one after the other. What
// is in use, or fails, is tried again later.
func (k *Keeper) DiscardAll(ctx context.Context, snaps []*sandbox.Snapshot, who core.Actor) {
	for _, snap := range snaps {
		if ctx.Err() != nil {
			return // they are marked, and the next server goes on
		}
		if err := k.discardOne(ctx, snap, who); err != nil {
			k.core.Log.Warn("a snapshot of no more use cannot be deleted now; it is tried again", "snapshot", snap.ID, "error", err)
			k.core.Retry(snap.ID)
		}
	}
}

func (k *Keeper) discardOne(ctx context.Context, snap *sandbox.Snapshot, who core.Actor) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteBound)
	defer cancel()
	give, err := k.core.Holds.OwnSoon(ctx, snap.ID)
	if err != nil {
		return err
	}
	defer give()
	return k.discard(ctx, snap, who)
}

// Leave marks what goes with a sandbox that is deleted: its snapshots
// without a name, and checkpoints.
func Leave(tx store.Tx, of *sandbox.Sandbox) ([]*sandbox.Snapshot, error) {
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
