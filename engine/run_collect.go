// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// collectPage is how many runs are deleted at a time: none holds up other commits.
const collectPage = 50

// runCollector deletes runs that are over, with their artifacts, until ctx is done:
// those whose sandbox a caller deleted, those that are too old, and the oldest where
// there are too many.
func (e *Engine) runCollector(ctx context.Context) {
	e.sweepArtifacts(ctx)
	for {
		e.collectRuns(ctx)
		t := time.NewTimer(e.round)
		select {
		case <-ctx.Done():
		case <-e.runs.wake:
		case <-t.C:
		}
		t.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

func (e *Engine) collectRuns(ctx context.Context) {
	at := e.now()
	e.takeArtifacts(ctx, store.RunQuery{Dropped: true}, "its sandbox was deleted", func(store.Tx) (bool, error) { return true, nil })
	// Whoever follows a run of a sandbox that is deleted shall see its end.
	e.collectMatching(ctx, store.RunQuery{Dropped: true, EndedBefore: at.Add(-lastWord)}, -1)
	e.collectMatching(ctx, store.RunQuery{EndedBefore: at.Add(-e.runKeep.Keep)}, -1)
	for e.tooMuchOutput(ctx) {
		if e.collectMatching(ctx, store.RunQuery{Ended: true}, collectPage) == 0 {
			break
		}
	}
	for project := range e.runs.uncrowd() {
		q := store.RunQuery{Project: project, Ended: true}
		var n int
		err := e.store.View(ctx, func(tx store.Tx) (err error) {
			n, err = tx.Runs().Count(q)
			return err
		})
		if err != nil {
			e.collectFailed(ctx, err)
			continue
		}
		e.collectMatching(ctx, q, max(n-e.runKeep.Most, 0))
	}
	e.evictArtifacts(ctx)
}

// lastWord is how long a run outlives its sandbox, at least.
const lastWord = 10 * time.Second

// tooMuchOutput tells whether all runs together have more than is kept.
func (e *Engine) tooMuchOutput(ctx context.Context) bool {
	var held int64
	err := e.store.View(ctx, func(tx store.Tx) (err error) {
		_, held, err = tx.Runs().Held()
		return err
	})
	if err != nil {
		e.collectFailed(ctx, err)
	}
	return err == nil && held > e.runKeep.MaxOutput
}

// collectMatching deletes the oldest runs of a query: most of them, or all (-1). It
// gives how many.
func (e *Engine) collectMatching(ctx context.Context, q store.RunQuery, most int) (n int) {
	q.Oldest = true
	for most != 0 && ctx.Err() == nil {
		q.Limit = collectPage
		if most > 0 {
			q.Limit = min(most, collectPage)
		}
		var there int
		err := e.store.View(ctx, func(tx store.Tx) (err error) { // mostly there is nothing to write
			there, err = tx.Runs().Count(q)
			return err
		})
		if err == nil && there == 0 {
			return n
		}
		var gone []*sandbox.Run
		if err == nil {
			err = e.deleteRuns(ctx, q, &gone)
		}
		if err != nil {
			e.collectFailed(ctx, err)
			return n
		}
		n += len(gone)
		for _, r := range gone { // what a crash leaves here has no record, and is swept
			e.removeArtifacts(r.ID)
		}
		if most > 0 {
			most -= len(gone)
		}
		if len(gone) < q.Limit {
			break
		}
	}
	return n
}

// deleteRuns deletes the records of a page of runs, and gives them.
func (e *Engine) deleteRuns(ctx context.Context, q store.RunQuery, gone *[]*sandbox.Run) error {
	return e.store.Update(ctx, func(tx store.Tx) (err error) {
		if *gone, _, err = tx.Runs().List(q); err != nil {
			return err
		}
		for _, r := range *gone {
			if err := tx.Runs().Delete(r.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *Engine) collectFailed(ctx context.Context, err error) {
	if ctx.Err() == nil && !fault.Is(err, fault.Unavailable) {
		e.log.Error("runs that are over cannot be collected", "error", err)
	}
}
