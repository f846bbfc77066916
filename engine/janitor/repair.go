// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package janitor

import (
	"context"
	"fmt"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// RemoveStrangers removes the instances that no record mentions and some event
// does: what is left of a create or a delete that a crash cut off. An instance
// that the store has never heard of is another store's, which was moved away or
// put back from a copy. Its disk is not ours to delete, and it stays. It returns the
// sandboxes of which no runtime holds anything. Its error is the store's.
func (j *Janitor) RemoveStrangers(ctx context.Context) (diskless []sandbox.ID, err error) {
	var ids map[sandbox.ID]string
	err = j.core.Store.View(ctx, func(tx store.Tx) (err error) {
		ids, err = tx.Sandboxes().Runtimes()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading which sandboxes there are: %w", err)
	}
	for _, name := range j.core.RuntimeNames() {
		handles, err := j.core.Runtimes[name].List(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			j.core.Log.Error("what a runtime holds cannot be listed", "runtime", name, "error", err)
			continue
		}
		there := make(map[sandbox.ID]struct{}, len(handles))
		for _, h := range handles {
			there[h.ID] = struct{}{}
			if r, ok := ids[h.ID]; ok && r == name {
				continue
			}
			if err := j.repair(ctx, thing{kindInstance, name, h.ID}); err != nil {
				return nil, err
			}
		}
		for id, r := range ids {
			if _, ok := there[id]; !ok && r == name {
				diskless = append(diskless, id)
			}
		}
	}
	return diskless, nil
}

// RemoveStrayed removes the snapshots and volumes that none of the records (their runtimes, by
// their ids) mentions and some event does: a crash of the host took their deletion back. What the
// store has never heard of is another store's, and stays. Its error is the store's.
func (j *Janitor) RemoveStrayed(ctx context.Context, snaps, vols map[sandbox.ID]string) error {
	for _, t := range j.inventory(ctx) {
		known := snaps
		switch t.kind {
		case kindVolume:
			known = vols
		case kindInstance:
			continue // see RemoveStrangers
		}
		if known[t.id] == t.runtime {
			continue
		}
		if err := j.repair(ctx, t); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// repair removes a thing that no record mentions, if it is ours.
func (j *Janitor) repair(ctx context.Context, t thing) error {
	heard, err := j.heardOf(ctx, t)
	switch {
	case err != nil:
		return fmt.Errorf("reading the events of the %s %s: %w", t.kind, t.id, err)
	case !heard:
		j.leave(t)
	default:
		j.collect(ctx, t)
	}
	return nil
}
