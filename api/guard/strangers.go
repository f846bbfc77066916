// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"sync/atomic"

	"golang.org/x/time/rate"
)

// Bounds of what a request may write into the log. Its path is chosen by anyone who reaches the
// port, which any page in a browser can make the browser do.
const (
	maxLoggedPath   = 200  // bytes
	maxLoggedError  = 2000 // bytes, of a caller's request
	strangersPerSec = 5    // lines of requests without a caller, after a burst
	strangersBurst  = 100
)

// strangers limits the lines of requests that have no caller.
type strangers struct {
	limit *rate.Limiter
	left  atomic.Int64 // lines that were not written since the last that was
}

func newStrangers() *strangers {
	return &strangers{limit: rate.NewLimiter(strangersPerSec, strangersBurst)}
}

// admit reports whether a line may be written, and how many were not before it.
func (s *strangers) admit() (leftOut int64, ok bool) {
	if !s.limit.Allow() {
		s.left.Add(1)
		return 0, false
	}
	return s.left.Swap(0), true
}
