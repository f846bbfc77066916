// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Room is the memory that one answer holds of a budget. A nil Room has no bound and counts
// nothing. It is safe for concurrent use.
type Room struct {
	b       *Budget
	project string

	mu     sync.Mutex
	held   int64
	closed bool
}

// ErrClosed is returned by Take on a closed room.
var ErrClosed = errors.New("the answer is over")

// Take adds n bytes to what the room holds, or as many as [Budget.Most] where that is
// less, and returns how many; it waits for them if it must. The error is
// fault.Exhausted, ctx's, or ErrClosed. An answer that takes all that it may need at once cannot
// wait for another that waits for it.
func (r *Room) Take(ctx context.Context, n int64) (int64, error) {
	if r == nil || n <= 0 {
		return max(n, 0), nil
	}
	n = min(n, r.b.Most())
	if err := r.b.take(ctx, r.project, n); err != nil {
		return 0, err
	}
	r.mu.Lock()
	closed := r.closed
	if !closed {
		r.held += n
	}
	r.mu.Unlock()
	if closed { // its answer is over
		r.b.give(r.project, n)
		return 0, ErrClosed
	}
	return n, nil
}

// Pace charges the room's project for n bytes that an answer sent on as they came, and held for a
// moment only. It returns once the project's earlier bytes are paid for, or with ctx's error.
func (r *Room) Pace(ctx context.Context, n int64) error {
	if r == nil || n <= 0 {
		return nil
	}
	return sleep(ctx, r.b.owe(r.project, n, time.Now()))
}

// Give returns n bytes of the room's to the budget.
func (r *Room) Give(n int64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	n = min(n, r.held)
	r.held -= n
	r.mu.Unlock()
	if n > 0 {
		r.b.give(r.project, n)
	}
}

// Held returns the bytes that the room holds.
func (r *Room) Held() int64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// Close returns all bytes to the budget. It may be called twice.
func (r *Room) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	n := r.held
	r.held, r.closed = 0, true
	r.mu.Unlock()
	if n > 0 {
		r.b.give(r.project, n)
	}
}
