// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package expiry

import (
	"sync"
	"time"

	"sandpit.dev/engine/alarm"
	"sandpit.dev/sandbox"
)

// Use is a use of a sandbox that counts against idleness.
type Use struct {
	At   time.Time // zero: nothing is known
	What string    // in a word, for people; empty: not known
}

// Clock knows when each sandbox is to be looked at next, and of which uses no record knows. A
// use moves no alarm: what is due is worked out from the record and the last use when the time
// comes, and the alarm put off if it is too early. It is safe for concurrent use.
type Clock struct {
	*alarm.Clock

	mu   sync.Mutex
	uses map[sandbox.ID]Use // that no record knows, of sandboxes that are not in memory
}

// NewClock returns a clock without alarms.
func NewClock() *Clock {
	return &Clock{Clock: alarm.New(), uses: make(map[sandbox.ID]Use)}
}

// Drop forgets a sandbox that is no more.
func (c *Clock) Drop(id sandbox.ID) {
	c.Set(id, time.Time{})
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.uses, id)
}

// Remember keeps a use of a sandbox that is about to leave memory.
func (c *Clock) Remember(id sandbox.ID, last Use) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses[id] = last
}

// Used returns the use that is kept of a sandbox, if any.
func (c *Clock) Used(id sandbox.ID) Use {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uses[id]
}
