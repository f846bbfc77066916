// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// nap counts for how long an instance was frozen. The time limits of what runs in
// it stand still meanwhile, inside and here.
type nap struct {
	mu    sync.Mutex
	began time.Time // zero: it is awake
	slept time.Duration
}

// begin is the freeze. Twice is fine.
func (n *nap) begin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.began.IsZero() {
		n.began = time.Now()
	}
}

// end is the thaw. Twice is fine.
func (n *nap) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.began.IsZero() {
		n.slept += time.Since(n.began)
		n.began = time.Time{}
	}
}

// total is how long it was frozen in all, up to now.
func (n *nap) total() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.began.IsZero() {
		return n.slept
	}
	return n.slept + time.Since(n.began)
}

// asleep tells whether it is frozen.
func (n *nap) asleep() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.began.IsZero()
}

// dozing is how often a bound that stands still is looked at, at the most.
const dozing = 100 * time.Millisecond

// awake gives a context that ends with ctx, or when the instance was awake for
// bound since now; and, if the engine ends while it is frozen, then: nothing would
// come of waiting.
func (e *Engine) awake(ctx context.Context, l *live, bound time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	end, slept := time.Now().Add(bound), l.nap.total()
	var mu sync.Mutex // the first look may come before the timer is known
	var timer *time.Timer
	mu.Lock()
	timer = time.AfterFunc(bound, func() {
		left := time.Until(end) + l.nap.total() - slept
		switch {
		case left <= 0:
			cancel(context.DeadlineExceeded)
		case e.group.ctx.Err() != nil && l.nap.asleep():
			cancel(errLeft)
		default:
			mu.Lock()
			defer mu.Unlock()
			if ctx.Err() == nil {
				timer.Reset(max(left, dozing))
			}
		}
	})
	mu.Unlock()
	stop := context.AfterFunc(e.group.ctx, func() {
		if l.nap.asleep() {
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

// left tells whether that is why such a context ended.
func left(ctx context.Context) bool { return context.Cause(ctx) == errLeft }

// late makes of err what it is when such a context's bound has passed.
func late(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == context.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return err
}
