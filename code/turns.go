// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"slices"
	"sync"
)

// turns lets one at a time through, in the order of asking. Its zero value lets the first one.
type turns struct {
	mu      sync.Mutex
	taken   bool
	waiting []chan struct{}
}

// ask returns the place of who asks, which is closed when it has its turn.
func (t *turns) ask() chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	place := make(chan struct{})
	if t.taken {
		t.waiting = append(t.waiting, place)
	} else {
		t.taken = true
		close(place)
	}
	return place
}

// wait waits for the turn of a place, and reports whether it came. It gives the place up where ctx ends before, or gone is closed.
func (t *turns) wait(ctx context.Context, gone <-chan struct{}, place chan struct{}) (bool, error) {
	select {
	case <-place:
		return true, nil
	default:
	}
	select {
	case <-place:
		return true, nil
	case <-gone:
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, place)
	if i < 0 { // it has come in this moment
		t.next()
	} else {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	return false, ctx.Err()
}

// release ends a turn.
func (t *turns) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
}

// next wakes the waiter that waits longest. The caller holds mu.
func (t *turns) next() {
	if t.taken = len(t.waiting) > 0; t.taken {
		close(t.waiting[0])
		t.waiting = t.waiting[1:]
	}
}
