// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// repairKept makes snapshots and volumes, and their records, the same again: what was
// being made is removed, what was being deleted is gone. The error is the store's; what
// else fails is logged and tried again by the clock.
func (e *Engine) repairKept(ctx context.Context) error {
	snaps, halves, err := e.knownSnapshots(ctx)
	if err != nil {
		return err
	}
	vols, moreHalves, err := e.knownVolumes(ctx)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(repairsAtOnce)
	for _, id := range append(halves, moreHalves...) {
		g.Go(func() error {
			e.expireSnapshot(gctx, id)
			return gctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return e.janitor.RemoveStrayed(ctx, snaps, vols)
}

// knownSnapshots returns the ids of all records by runtime, and of those that are intents.
func (e *Engine) knownSnapshots(ctx context.Context) (known map[sandbox.ID]string, halves []sandbox.ID, err error) {
	known = make(map[sandbox.ID]string)
	q := store.SnapshotQuery{Limit: store.MaxPage, Oldest: true}
	for {
		var page []*sandbox.Snapshot
		err := e.store.View(ctx, func(tx store.Tx) (err error) {
			page, q.Cursor, err = tx.Snapshots().List(q)
			return err
		})
		if err != nil {
			return nil, nil, fmt.Errorf("reading the snapshots of the last run: %w", err)
		}
		for _, snap := range page {
			known[snap.ID] = snap.Runtime
			if snap.State != sandbox.SnapshotReady {
				halves = append(halves, snap.ID)
			}
		}
		if q.Cursor == "" {
			return known, halves, nil
		}
	}
}

func (e *Engine) knownVolumes(ctx context.Context) (known map[sandbox.ID]string, halves []sandbox.ID, err error) {
	known = make(map[sandbox.ID]string)
	var all []*sandbox.Volume
	err = e.store.View(ctx, func(tx store.Tx) (err error) {
		all, err = tx.Volumes().List("")
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading the volumes of the last run: %w", err)
	}
	for _, v := range all {
		known[v.ID] = v.Runtime
		if v.State != sandbox.VolumeReady {
			halves = append(halves, v.ID)
		}
	}
	return known, halves, nil
}

// expireWait is how long finishing one of them waits for whoever has it.
const expireWait = 100 * time.Millisecond

// expireSnapshot finishes or undoes what was begun with a snapshot or a volume, if anything
// was. What cannot be done now is tried again.
func (e *Engine) expireSnapshot(ctx context.Context, id sandbox.ID) {
	wctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileBound)
	defer cancel()
	soon, enough := context.WithTimeout(wctx, expireWait)
	defer enough()
	give, err := e.holds.Own(soon, id)
	if err != nil {
		e.retry(id) // in use, or a verb is at it
		return
	}
	defer give()
	if err := e.reconcileSnapshot(wctx, id); err != nil {
		e.log.Error("a snapshot or a volume that was begun or deleted cannot be settled now; it is tried again", "id", id, "error", err)
		e.retry(id)
	}
}

// reconcileSnapshot is the work of expireSnapshot. The caller has it alone.
func (e *Engine) reconcileSnapshot(ctx context.Context, id sandbox.ID) error {
	var snap *sandbox.Snapshot
	var vol *sandbox.Volume
	err := e.store.View(ctx, func(tx store.Tx) (err error) {
		if snap, err = tx.Snapshots().Get(id); fault.Is(err, fault.NotFound) {
			vol, err = tx.Volumes().Get(id)
		}
		return err
	})
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	case vol != nil && vol.State == sandbox.VolumeCreating:
		return e.eraseVolume(ctx, vol, nil)
	case vol != nil && vol.State == sandbox.VolumeDeleting:
		return e.eraseVolume(ctx, vol, volumeEvent(core.System, sandbox.EventVolumeDeleted, vol, e.now(), fmt.Sprintf("%s, named %q; finished after an earlier failure", vol.ID, vol.Name)))
	case vol != nil:
		return nil
	case snap.State == sandbox.SnapshotCreating:
		return e.eraseSnapshot(ctx, snap, nil)
	case snap.State == sandbox.SnapshotDeleting:
		return e.discard(ctx, snap, core.System)
	}
	return nil
}
