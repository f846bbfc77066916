// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"context"
	"time"
)

const (
	// rest is how much longer than its work a sandbox's watches rest: all of them together
	// take at most a quarter of a processor, which is the server's and not the sandbox's.
	rest = 3
	// leastRest is what a timer is worth.
	leastRest = time.Millisecond
)

// turn is held by the one of a sandbox's watches that makes events of what happened.
type turn struct {
	free chan struct{} // has one value while it is free

	// the holder's
	since time.Time
	until time.Time // of the rest that the work so far earned
}

func newTurn() turn {
	t := turn{free: make(chan struct{}, 1)}
	t.free <- struct{}{}
	return t
}

// take waits for the turn, and for the rest that earlier work earned.
func (t *turn) take(ctx context.Context) error {
	select {
	case <-t.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	if left := time.Until(t.until); left >= leastRest {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			t.free <- struct{}{}
			return ctx.Err()
		}
	}
	t.since = time.Now()
	return nil
}

func (t *turn) give() {
	now := time.Now()
	if t.until.Before(now) {
		t.until = now
	}
	t.until = t.until.Add(rest * now.Sub(t.since))
	t.free <- struct{}{}
}
