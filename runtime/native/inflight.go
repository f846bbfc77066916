// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"sync"
	"time"
)

// inflight counts the verbs under way. What is made ahead waits until there are none: it
// would else take the processor from a caller. It is safe for concurrent use.
type inflight struct {
	mu   sync.Mutex
	busy int       // verbs under way
	last time.Time // when the last one ended
}

// begin counts a verb until done is called.
func (f *inflight) begin() (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.busy--
		f.last = time.Now()
	}
}

// idle returns how long to wait before no verb may have been under way for period; 0 if none was.
func (f *inflight) idle(period time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.busy > 0:
		return period
	case f.last.IsZero():
		return 0
	}
	return max(0, period-time.Since(f.last))
}
