// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// collectPage is how many runs are deleted at a time: none holds up other commits.
const collectPage = 50

// lastWord is how long a run outlives its sandbox, at least.
const lastWord = 10 * time.Second

// crowd has the collector count the runs of a project.
func (r *Runner) crowd(project string) {
	r.mu.Lock()
	r.crowded[project] = true
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// takeCrowded returns the projects that are to be counted.
func (r *Runner) takeCrowded() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.crowded
	r.crowded = make(map[string]bool)
	return all
}

// collect deletes runs that are over, with their artifacts, until ctx is done: those whose
// sandbox a caller deleted, those that are too old, and the oldest where there are too many.
func (r *Runner) collect(ctx context.Context) {
	if r.engine.WaitReady(ctx) != nil {
		return
	}
	r.sweepArtifacts(ctx)
	for {
		r.collectOnce(ctx)
		t := time.NewTimer(r.o.Round)
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-r.engine.RunsDropped():
		case <-t.C:
		}
		t.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

func (r *Runner) collectOnce(ctx context.Context) {
	at := r.now()
	r.takeArtifacts(ctx, store.RunQuery{Dropped: true}, "its sandbox was deleted", func(store.Tx) (bool, error) { return true, nil })
	// Who follows a run of a sandbox that is deleted shall see its end.
	r.delete(ctx, store.RunQuery{Dropped: true, EndedBefore: at.Add(-lastWord)}, -1)
	r.delete(ctx, store.RunQuery{EndedBefore: at.Add(-r.o.Keep)}, -1)
	for r.tooMuchOutput(ctx) {
		if r.delete(ctx, store.RunQuery{Ended: true}, collectPage) == 0 {
			break
		}
	}
	for project := range r.takeCrowded() {
		q := store.RunQuery{Project: project, Ended: true}
		var n int
		err := r.store.View(ctx, func(tx store.Tx) (err error) {
			n, err = tx.Runs().Count(q)
			return err
		})
		if err != nil {
			r.collectFailed(ctx, err)
			continue
		}
		r.delete(ctx, q, max(n-r.o.Most, 0))
	}
	r.evictArtifacts(ctx)
}

// tooMuchOutput reports whether all runs together have more than is kept.
func (r *Runner) tooMuchOutput(ctx context.Context) bool {
	var held int64
	err := r.store.View(ctx, func(tx store.Tx) (err error) {
		_, held, err = tx.Runs().Held()
		return err
	})
	if err != nil {
		r.collectFailed(ctx, err)
	}
	return err == nil && held > r.o.MaxOutput
}

// delete deletes the oldest runs of a query: most of them, or all (-1). It returns how many.
func (r *Runner) delete(ctx context.Context, q store.RunQuery, most int) (n int) {
	q.Oldest = true
	for most != 0 && ctx.Err() == nil {
		q.Limit = collectPage
		if most > 0 {
			q.Limit = min(most, collectPage)
		}
		gone, err := r.deletePage(ctx, q)
		if err != nil {
			r.collectFailed(ctx, err)
			return n
		}
		n += len(gone)
		for _, run := range gone { // what a crash leaves here has no record, and is swept
			r.removeArtifacts(run.ID)
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

// deletePage deletes the records of a page of runs, and returns them.
func (r *Runner) deletePage(ctx context.Context, q store.RunQuery) (gone []*sandbox.Run, err error) {
	there := 0
	err = r.store.View(ctx, func(tx store.Tx) (err error) { // mostly there is nothing to write
		there, err = tx.Runs().Count(q)
		return err
	})
	if err != nil || there == 0 {
		return nil, err
	}
	err = r.store.Update(ctx, func(tx store.Tx) (err error) {
		if gone, _, err = tx.Runs().List(q); err != nil {
			return err
		}
		for _, run := range gone {
			if err := tx.Runs().Delete(run.ID); err != nil {
				return err
			}
		}
		return nil
	})
	return gone, err
}

func (r *Runner) collectFailed(ctx context.Context, err error) {
	if ctx.Err() == nil && !fault.Is(err, fault.Unavailable) {
		r.o.Logger.Error("runs that are over cannot be collected", "error", err)
	}
}
