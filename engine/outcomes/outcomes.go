// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package outcomes has the commits of results that callers have already got. Who reads or changes what
// such a commit writes waits for those that were under way before: so nobody can tell that the answer
// came first. It knows neither what is committed nor of what it is the result.
package outcomes

import (
	"context"
	"slices"
	"sync"
)

// Table has the commits that are under way, by what they are of. Its zero value is empty. It is safe for
// concurrent use.
type Table[K comparable] struct {
	mu   sync.Mutex
	open []outcome[K]
}

// outcome is one that is not committed yet.
type outcome[K comparable] struct {
	of   K
	done chan struct{}
}

// Begin notes a commit that is to come, before the caller gets the result; end is called once, after
// it.
func (t *Table[K]) Begin(of K) (end func()) {
	done := make(chan struct{})
	t.mu.Lock()
	t.open = append(t.open, outcome[K]{of, done})
	t.mu.Unlock()
	return func() {
		t.mu.Lock()
		t.open = slices.DeleteFunc(t.open, func(x outcome[K]) bool { return x.done == done })
		t.mu.Unlock()
		close(done)
	}
}

// Wait waits for the commits of one that began before it. Its error is ctx's. A commit has a bound of its
// own.
func (t *Table[K]) Wait(ctx context.Context, of K) error {
	return t.WaitFor(ctx, func(k K) bool { return k == of })
}

// WaitFor is Wait for all that concerns reports.
func (t *Table[K]) WaitFor(ctx context.Context, concerns func(K) bool) error {
	t.mu.Lock()
	var open []chan struct{}
	for _, x := range t.open {
		if concerns(x.of) {
			open = append(open, x.done)
		}
	}
	t.mu.Unlock()
	for _, done := range open {
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
