// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// pauses counts for how long an instance was frozen. The time limits of what runs in
// it stand still meanwhile, inside and here.
type pauseClock struct {
	mu    sync.Mutex
	began time.Time // zero: it is awake
	slept time.Duration
}

// begin is the freeze. Twice is fine.
func (n *pauseClock) begin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.began.IsZero() {
		n.began = time.Now()
	}
}

// end is the thaw. Twice is fine.
func (n *pauseClock) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.began.IsZero() {
		n.slept += time.Since(n.began)
		n.began = time.Time{}
	}
}

// total is how long it was frozen in all, up to now.
func (n *pauseClock) total() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.began.IsZero() {
		return n.slept
	}
	return n.slept + time.Since(n.began)
}

// paused reports whether it is frozen.
func (n *pauseClock) paused() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.began.IsZero()
}

// pausedPoll is how often a bound that stands still is looked at, at the most.
const pausedPoll = 100 * time.Millisecond

// unlessPaused returns a context that ends with ctx, or when the instance was awake for
// bound since now; and, if the engine ends while it is frozen, then: nothing would
// come of waiting.
func (e *Engine) unlessPaused(ctx context.Context, l *session, bound time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	end, slept := time.Now().Add(bound), l.pauses.total()
	var mu sync.Mutex // the first look may come before the timer is known
	var timer *time.Timer
	mu.Lock()
	timer = time.AfterFunc(bound, func() {
		left := time.Until(end) + l.pauses.total() - slept
		switch {
		case left <= 0:
			cancel(context.DeadlineExceeded)
		case e.group.ctx.Err() != nil && l.pauses.paused():
			cancel(errLeft)
		default:
			mu.Lock()
			defer mu.Unlock()
			if ctx.Err() == nil {
				timer.Reset(max(left, pausedPoll))
			}
		}
	})
	mu.Unlock()
	stop := context.AfterFunc(e.group.ctx, func() {
		if l.pauses.paused() {
			cancel(errLeft)
		}
	})
	return ctx, func() {
		stop()
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
		cancel(context.Canceled)
	}
}

// errLeft is that the engine ended while an instance was frozen. What was about to
// be done is left to the next one, which finds its intent.
var errLeft = errors.New("the server ends, and the sandbox is paused")

// left reports whether that is why such a context ended.
func left(ctx context.Context) bool { return context.Cause(ctx) == errLeft }

// late makes of err what it is when such a context's bound has passed.
func late(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == context.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return err
}
