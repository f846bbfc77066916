// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
	"time"
)

// lull does something once work is over: burst units of it or more were done, and
// then none for quiet. It has no timer while nothing happens.
type lull struct {
	burst int
	quiet time.Duration
	do    func() // on a goroutine of its own

	mu    sync.Mutex
	work  int // units since it was last done
	timer *time.Timer
	armed bool
	shut  bool
}

// used counts a unit of work.
func (l *lull) used() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.work++; l.work < l.burst || l.armed || l.shut {
		return
	}
	l.armed = true
	seen := l.work
	l.timer = time.AfterFunc(l.quiet, func() { l.look(&seen) })
}

// look does it if no work was done since it last looked.
func (l *lull) look(seen *int) {
	l.mu.Lock()
	if l.shut {
		l.mu.Unlock()
		return
	}
	if l.work != *seen {
		*seen = l.work
		l.timer.Reset(l.quiet)
		l.mu.Unlock()
		return
	}
	l.work, l.armed = 0, false
	l.mu.Unlock()
	l.do()
}

// close ends it; it may be doing it right now.
func (l *lull) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut = true
	if l.timer != nil {
		l.timer.Stop()
	}
}
