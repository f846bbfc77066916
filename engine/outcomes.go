// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"sync"
)

// outcomes are the commits of results that callers have already got. Who reads
// or changes what such a commit writes waits for those that were under way
// before: so nobody can tell that the answer came first.
type outcomes struct {
	mu   sync.Mutex
	open []outcome
}

// outcome is one that is not committed yet.
type outcome struct {
	of   *entry
	done chan struct{}
}

// begin notes a commit that is to come, before the caller gets the result; end
// is called once, after it.
func (o *outcomes) begin(b *entry) (end func()) {
	done := make(chan struct{})
	o.mu.Lock()
	o.open = append(o.open, outcome{b, done})
	o.mu.Unlock()
	return func() {
		o.mu.Lock()
		o.open = slices.DeleteFunc(o.open, func(x outcome) bool { return x.done == done })
		o.mu.Unlock()
		close(done)
	}
}

// wait waits for the commits of one sandbox that began before it. Its error is
// ctx's. A commit has a bound of its own.
func (o *outcomes) wait(ctx context.Context, b *entry) error {
	return o.waitFor(ctx, func(of *entry) bool { return of == b })
}

// waitProject is wait for the sandboxes of one project.
func (o *outcomes) waitProject(ctx context.Context, project string) error {
	return o.waitFor(ctx, func(of *entry) bool {
		s := of.record.Load()
		return s != nil && s.Project == project // without a record: it was deleted, and nobody lists it
	})
}

func (o *outcomes) waitFor(ctx context.Context, concerns func(*entry) bool) error {
	o.mu.Lock()
	var open []chan struct{}
	for _, x := range o.open {
		if concerns(x.of) {
			open = append(open, x.done)
		}
	}
	o.mu.Unlock()
	for _, done := range open {
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
