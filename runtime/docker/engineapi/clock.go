// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"context"
	"time"
)

// Clock starts the timers that bound calls. Nil is the machine's; a test has one that it can hurry.
type Clock interface {
	// AfterFunc calls f in a goroutine of its own after d, as [time.AfterFunc] does.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is one of a clock's.
type Timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

func afterFunc(c Clock, d time.Duration, f func()) Timer {
	if c == nil {
		return time.AfterFunc(d, f)
	}
	return c.AfterFunc(d, f)
}

// WithTimeout returns a copy of ctx that ends after d by a clock, with a cause. A call that the end of such a context ends
// returns its cause, if that is a *fault.Error.
func WithTimeout(ctx context.Context, c Clock, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if c == nil {
		return context.WithTimeoutCause(ctx, d, cause)
	}
	limit, cancel := context.WithCancelCause(ctx)
	timer := c.AfterFunc(d, func() { cancel(cause) })
	return limit, func() {
		timer.Stop()
		cancel(context.Canceled)
	}
}
