// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package retention deletes events that are too old, or too many. It knows the records, and no
// verb.
package retention

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Options is the retention of events. Those that something still needs are kept
// whatever it says, see [store.Events].
type Options struct {
	Keep  time.Duration // they are deleted after that; zero: 90 days
	Count int           // and beyond the newest so many of a project; zero: 1,000,000
}

const (
	defaultKeep  = 90 * 24 * time.Hour
	defaultCount = 1_000_000
)

func (o Options) filled() Options {
	if o.Keep <= 0 {
		o.Keep = defaultKeep
	}
	if o.Count <= 0 {
		o.Count = defaultCount
	}
	return o
}

const (
	// rounds of the janitor make one of the retention's.
	rounds = 10
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

// Pruner deletes the events of a store.
type Pruner struct {
	store   store.Store
	keep    Options
	needs   Needs
	deleted prometheus.Counter
	log     *slog.Logger
}

// Needs is what a Pruner asks of the engine.
type Needs struct {
	Round time.Duration         // of the janitor
	Now   func() time.Time      // as records have it
	Spare func(sandbox.ID) bool // reports whether the events of a sandbox stay whatever their age
}

// New returns a pruner. It counts in deleted.
func New(s store.Store, keep Options, needs Needs, deleted prometheus.Counter, log *slog.Logger) *Pruner {
	return &Pruner{store: s, keep: keep.filled(), needs: needs, deleted: deleted, log: log}
}

// Run deletes events that are too old, or too many, until ctx is done.
func (p *Pruner) Run(ctx context.Context) {
	t := time.NewTimer(p.needs.Round)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		n, err := p.prune(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			p.log.Error("events that are too old or too many cannot be deleted now; it is tried again", "error", err)
		case n > 0:
			p.log.Info("events that were too old or too many were deleted", "events", n, "took", time.Since(began))
		}
		t.Reset(rounds * p.needs.Round)
	}
}

// prune is one round. It holds the store for a batch at a time.
func (p *Pruner) prune(ctx context.Context) (deleted int, err error) {
	at := p.needs.Now()
	deleted, err = p.pruneAll(ctx, store.EventPrune{Before: at.Add(-p.keep.Keep)})
	if err != nil {
		return deleted, err
	}
	var surplus map[string]int64
	err = p.store.View(ctx, func(tx store.Tx) (err error) {
		surplus, err = tx.Events().Surplus(p.keep.Count)
		return err
	})
	for project, upto := range surplus {
		if err != nil {
			break
		}
		var n int
		n, err = p.pruneAll(ctx, store.EventPrune{Project: project, Upto: upto, Recent: at.Add(-ownedFor)})
		deleted += n
	}
	return deleted, err
}

func (p *Pruner) pruneAll(ctx context.Context, q store.EventPrune) (deleted int, err error) {
	q.Limit, q.Spare = pruneBatch, p.needs.Spare
	if q.Recent.IsZero() {
		q.Recent = p.needs.Now()
	}
	for {
		began := time.Now()
		var n int
		err := p.store.Update(ctx, func(tx store.Tx) (err error) {
			n, q.After, err = tx.Events().Prune(q)
			return err
		})
		if err != nil {
			return deleted, err
		}
		deleted += n
		p.deleted.Add(float64(n))
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
