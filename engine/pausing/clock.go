// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package pausing counts how long a sandbox was paused, and has time limits stand still meanwhile.
package pausing

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Clock counts for how long an instance was frozen. The time limits of what runs in
// it stand still meanwhile, inside and here. Its zero value is that of one that is awake.
type Clock struct {
	mu    sync.Mutex
	began time.Time // zero: it is awake
	slept time.Duration
}

// Begin is the freeze. Twice is fine.
func (n *Clock) Begin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.began.IsZero() {
		n.began = time.Now()
	}
}

// End is the thaw. Twice is fine.
func (n *Clock) End() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.began.IsZero() {
		n.slept += time.Since(n.began)
		n.began = time.Time{}
	}
}

// Total returns how long it was frozen in all, up to now.
func (n *Clock) Total() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.began.IsZero() {
		return n.slept
	}
	return n.slept + time.Since(n.began)
}

// Paused reports whether it is frozen.
func (n *Clock) Paused() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.began.IsZero()
}

// pausedPoll is how often a bound that stands still is looked at, at the most.
const pausedPoll = 100 * time.Millisecond

// Bound returns a context that ends with ctx, or when the instance was awake for
// bound since now; and, if the engine's life ends while it is frozen, then: nothing would
// come of waiting.
func (n *Clock) Bound(ctx, life context.Context, bound time.Duration) (context.Context, context.CancelFunc) {
	b := &bounded{clock: n, life: life, end: time.Now().Add(bound), slept: n.Total()}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	b.mu.Lock()
	b.timer = time.AfterFunc(bound, b.look)
	b.mu.Unlock()
	b.stop = context.AfterFunc(life, func() {
		if n.Paused() {
			b.cancel(errLeft)
		}
	})
	return b.ctx, b.over
}

// bounded is one context of Bound, in one piece: every command has two.
type bounded struct {
	clock  *Clock
	life   context.Context
	end    time.Time
	slept  time.Duration // before it began
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   func() bool

	mu    sync.Mutex // the first look may come before the timer is known
	timer *time.Timer
}

// look ends the context when its time is over, and else looks again later.
func (b *bounded) look() {
	left := time.Until(b.end) + b.clock.Total() - b.slept
	switch {
	case left <= 0:
		b.cancel(context.DeadlineExceeded)
	case b.life.Err() != nil && b.clock.Paused():
		b.cancel(errLeft)
	default:
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.ctx.Err() == nil {
			b.timer.Reset(max(left, pausedPoll))
		}
	}
}

// over ends the context.
func (b *bounded) over() {
	b.stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer.Stop()
	b.cancel(context.Canceled)
}

// errLeft is that the engine ended while an instance was frozen. What was about to
// be done is left to the next one, which finds its intent.
var errLeft = errors.New("the server ends, and the sandbox is paused")

// Left reports whether that is why such a context ended.
func Left(ctx context.Context) bool { return context.Cause(ctx) == errLeft }

// Late makes of err what it is when such a context's bound has passed.
func Late(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == context.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return err
}
