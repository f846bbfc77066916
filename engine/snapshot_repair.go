// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// repairKept makes snapshots and volumes, and their records, the same again: what was
// being made is removed, what was being deleted is gone. The error is the store's; what
// else fails is logged and tried again by the clock.
func (e *Engine) repairKept(ctx context.Context) error {
	snaps, intents, err := e.snapshots.Known(ctx)
	if err != nil {
		return err
	}
	vols, more, err := e.volumes.Known(ctx)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(repairsAtOnce)
	for _, id := range append(intents, more...) {
		g.Go(func() error {
			e.expireKept(gctx, id)
			return gctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return e.janitor.RemoveStrayed(ctx, snaps, vols)
}

// expireWait is how long finishing one of them waits for whoever has it.
const expireWait = 100 * time.Millisecond

// expireKept finishes or undoes what was begun with a snapshot or a volume, if anything
// was. What cannot be done now is tried again.
func (e *Engine) expireKept(ctx context.Context, id sandbox.ID) {
	wctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileBound)
	defer cancel()
	soon, enough := context.WithTimeout(wctx, expireWait)
	defer enough()
	give, err := e.core.Holds.Own(soon, id)
	if err != nil {
		e.retry(id) // in use, or a verb is at it
		return
	}
	defer give()
	if err = e.snapshots.Reconcile(wctx, id); fault.Is(err, fault.NotFound) {
		err = e.volumes.Reconcile(wctx, id)
	}
	if err != nil {
		e.core.Log.Error("a snapshot or a volume that was begun or deleted cannot be reconciled now; it is tried again", "id", id, "error", err)
		e.retry(id)
	}
}
