// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/store"
)

// EventOptions is the retention of events. Those that something still needs are kept
// whatever it says, see [store.Events].
type EventOptions struct {
	Keep  time.Duration // they are deleted after that; zero: 90 days
	Count int           // and beyond the newest so many of a project; zero: 1,000,000
}

const (
	defaultEventKeep  = 90 * 24 * time.Hour
	defaultEventCount = 1_000_000
)

func (o EventOptions) filled() EventOptions {
	if o.Keep <= 0 {
		o.Keep = defaultEventKeep
	}
	if o.Count <= 0 {
		o.Count = defaultEventCount
	}
	return o
}

const (
	// retentionRounds of the janitor make one of the retention's.
	retentionRounds = 10
	// pruneBatch is how many events one transaction looks at: a few milliseconds, in
	// which commits wait.
	pruneBatch = 256
	// pruneRest is how much longer than its batch the retention rests after it: the
	// commits of all others come first.
	pruneRest = 3
	// ownedFor is how long the events by which the janitor knows what is its own to
	// remove are kept however many a project has: it has had its rounds by then.
	ownedFor = time.Hour
)

// runRetention deletes events that are too old, or too many, until ctx is done.
func (e *Engine) runRetention(ctx context.Context) {
	t := time.NewTimer(e.round)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		n, err := e.prune(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			e.log.Error("events that are too old or too many cannot be deleted now; it is tried again", "error", err)
		case n > 0:
			e.log.Info("events that were too old or too many were deleted", "events", n, "took", time.Since(began))
		}
		t.Reset(retentionRounds * e.round)
	}
}

// prune is one round. It holds the store for a batch at a time.
func (e *Engine) prune(ctx context.Context) (deleted int, err error) {
	at := e.now()
	deleted, err = e.pruneAll(ctx, store.EventPrune{Before: at.Add(-e.eventKeep.Keep)})
	if err != nil {
		return deleted, err
	}
	var surplus map[string]int64
	err = e.store.View(ctx, func(tx store.Tx) (err error) {
		surplus, err = tx.Events().Surplus(e.eventKeep.Count)
		return err
	})
	for project, upto := range surplus {
		if err != nil {
			break
		}
		var n int
		n, err = e.pruneAll(ctx, store.EventPrune{Project: project, Upto: upto, Recent: at.Add(-ownedFor)})
		deleted += n
	}
	return deleted, err
}

func (e *Engine) pruneAll(ctx context.Context, q store.EventPrune) (deleted int, err error) {
	q.Limit, q.Spare = pruneBatch, e.pools.owns
	if q.Recent.IsZero() {
		q.Recent = e.now()
	}
	for {
		began := time.Now()
		var n int
		err := e.store.Update(ctx, func(tx store.Tx) (err error) {
			n, q.After, err = tx.Events().Prune(q)
			return err
		})
		if err != nil {
			return deleted, err
		}
		deleted += n
		e.metrics.eventsPruned.Add(float64(n))
		if q.After == 0 {
			return deleted, nil
		}
		t := time.NewTimer(pruneRest * time.Since(began))
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return deleted, ctx.Err()
		}
	}
}
