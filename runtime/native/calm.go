// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"sync"
	"time"
)

// calm knows whether sandboxes begin or go. What is made ahead is made when none does:
// it would else take the processor from whoever asks for one. It is safe for concurrent use.
type calm struct {
	mu   sync.Mutex
	busy int       // verbs under way
	last time.Time // when the last one ended
}

// begin notes that a verb begins, and gives what notes its end.
func (c *calm) begin() (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.busy--
		c.last = time.Now()
	}
}

// until says when to look again whether nothing has gone on for that long; 0: it has not.
func (c *calm) until(period time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.busy > 0:
		return period
	case c.last.IsZero():
		return 0
	}
	return max(0, period-time.Since(c.last))
}
