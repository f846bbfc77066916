// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"
	"slices"

	"sandpit.dev/access"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Resume goes on with the runs of the last server, and deletes what is over from now on. It is for
// the engine's Run, which calls it before the engine is ready: so the runs take their places
// in the queues before others can, first those that were at work, then in the order of asking.
func (r *Runner) Resume(ctx context.Context) error {
	var all []*worker
	err := r.store.View(ctx, func(tx store.Tx) error {
		q := store.RunQuery{Live: true, Oldest: true, Limit: store.MaxPage}
		for {
			page, next, err := tx.Runs().List(q)
			if err != nil {
				return err
			}
			for _, one := range page {
				run, err := tx.Runs().Get(one.ID)
				if err != nil {
					return err
				}
				w := newWorker(r, callerOf(run), run)
				if w.seq, err = tx.Runs().LastSeq(run.ID); err != nil {
					return err
				}
				all = append(all, w)
			}
			if q.Cursor = next; next == "" {
				return nil
			}
		}
	})
	if err != nil {
		return fmt.Errorf("reading the runs of the last server: %w", err)
	}
	atWork := func(w *worker) int {
		if w.run.State == sandbox.RunRunning {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b *worker) int { return atWork(a) - atWork(b) })
	for _, w := range all {
		if w.run.Locked {
			w.ticket = r.queues.join(name{w.run.Project, w.run.Identifier})
		}
		if w.run.Canceled {
			w.stop()
		}
		r.add(w)
		r.engine.Go(w.work)
	}
	if len(all) > 0 {
		r.o.Logger.Info("the runs of the last server go on", "runs", len(all))
	}
	r.engine.Go(r.collect)
	return nil
}

// callerOf returns the caller that a run of an earlier server acts for. Its token was checked
// when the run was asked for.
func callerOf(run *sandbox.Run) access.Caller {
	return access.Caller{Project: run.Project, Actor: run.Actor, Via: run.Via, Scopes: access.DefaultScopes()}
}
