// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
	"time"
)

// idleTask does something once work is over: burst units of it or more were done, and
// then none for quiet. It has no timer while nothing happens.
type idleTask struct {
	burst int
	quiet time.Duration
	do    func() (done bool) // on a goroutine of its own; not done: it is tried again

	mu     sync.Mutex
	work   int // units since it was last done
	failed int // tries since the last work
	timer  *time.Timer
	armed  bool
	shut   bool
}

// idleTries is how often a task is tried after the last work, each time after twice the time: a
// minute in all, where quiet is a second.
const idleTries = 6

// used counts a unit of work.
func (i *idleTask) used() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.failed = 0
	if i.work++; i.work >= i.burst {
		i.arm(i.quiet)
	}
}

// arm has the task done after a while, with mu held.
func (i *idleTask) arm(after time.Duration) {
	if i.armed || i.shut {
		return
	}
	i.armed = true
	seen := i.work
	i.timer = time.AfterFunc(after, func() { i.look(&seen) })
}

// look does the task if no work was done since it last looked.
func (i *idleTask) look(seen *int) {
	i.mu.Lock()
	if i.shut {
		i.mu.Unlock()
		return
	}
	if i.work != *seen {
		*seen = i.work
		i.timer.Reset(i.quiet)
		i.mu.Unlock()
		return
	}
	i.work, i.armed = 0, false
	i.mu.Unlock()
	if i.do() {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failed++; i.failed < idleTries {
		i.arm(i.quiet << i.failed)
	}
}

// close ends it; it may be doing it right now.
func (i *idleTask) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.shut = true
	if i.timer != nil {
		i.timer.Stop()
	}
}
