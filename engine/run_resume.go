// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"

	"sandpit.dev/access"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// resumeRuns goes on with the runs of the last server, once the engine is ready. They
// take their places in line again before anybody else can: first who was at work, then
// in the order of asking.
func (e *Engine) resumeRuns(ctx context.Context) error {
	var all []*liveRun
	err := e.store.View(ctx, func(tx store.Tx) error {
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
				l := newLiveRun(e, runCaller(run), run)
				if l.seq, err = tx.Runs().LastSeq(run.ID); err != nil {
					return err
				}
				all = append(all, l)
			}
			if q.Cursor = next; next == "" {
				return nil
			}
		}
	})
	if err != nil {
		return fmt.Errorf("reading the runs of the last server: %w", err)
	}
	atWork := func(l *liveRun) int {
		if l.run.State == sandbox.RunRunning {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b *liveRun) int { return atWork(a) - atWork(b) })
	for _, l := range all {
		if l.run.Locked {
			l.place = e.runs.lines.join(name{l.run.Project, l.run.Identifier})
		}
		if l.run.Canceled {
			l.stop()
		}
		e.runs.add(l)
		e.group.spawn(l.work)
	}
	if len(all) > 0 {
		e.log.Info("the runs of the last server go on", "runs", len(all))
	}
	return nil
}

// runCaller is who a run of an earlier server acts for. Its token was checked when it
// was asked for.
func runCaller(r *sandbox.Run) access.Caller {
	return access.Caller{Project: r.Project, Actor: r.Actor, Via: r.Via, Scopes: access.DefaultScopes()}
}
