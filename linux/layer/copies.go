// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"sync"
	"time"
)

// copies counts the copies of trees that are being made.
type copies struct {
	mu    sync.Mutex
	now   int
	ended time.Time // when the last one was done
}

// begin notes that one is being made, until end is called.
func (c *copies) begin() (end func()) {
	c.mu.Lock()
	c.now++
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		c.now--
		c.ended = time.Now()
		c.mu.Unlock()
	}
}

// still is how long none was made; 0: one is.
func (c *copies) still() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now > 0 {
		return 0
	}
	return time.Since(c.ended)
}

// waitIdle waits until none was made for so long, at most for most, and not once stop is closed.
func (c *copies) waitIdle(long, most time.Duration, stop <-chan struct{}) {
	until := time.Now().Add(most)
	for {
		wait := min(max(long-c.still(), 0), time.Until(until))
		if wait <= 0 {
			return
		}
		select {
		case <-time.After(wait):
		case <-stop:
			return
		}
	}
}
