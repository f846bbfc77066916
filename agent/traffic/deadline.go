// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"sync"
	"time"
)

// deadline is a time at which who waits is woken.
type deadline struct {
	d *deadlineState
}

type deadlineState struct {
	mu    sync.Mutex
	timer *time.Timer
	over  chan struct{} // closed when the time has come
}

func newDeadline() deadline { return deadline{&deadlineState{over: make(chan struct{})}} }

// set changes the time; zero: there is none.
func (d deadline) set(t time.Time) {
	s := d.d
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil && !s.timer.Stop() {
		<-s.over // it is being closed
	}
	s.timer = nil
	closed := isClosed(s.over)
	if t.IsZero() {
		if closed {
			s.over = make(chan struct{})
		}
		return
	}
	if wait := time.Until(t); wait > 0 {
		if closed {
			s.over = make(chan struct{})
		}
		over := s.over
		s.timer = time.AfterFunc(wait, func() { close(over) })
		return
	}
	if !closed {
		close(s.over)
	}
}

func (d deadline) wait() chan struct{} {
	d.d.mu.Lock()
	defer d.d.mu.Unlock()
	return d.d.over
}

func (d deadline) past() bool { return isClosed(d.wait()) }

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
