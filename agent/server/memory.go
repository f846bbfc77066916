// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"runtime/debug"
	"sync"
	"time"

	"sandpit.dev/agent/wire"
)

var longAgo = time.Unix(1, 0)

// memory lends buffers, and gives memory back to the kernel when a burst of
// work is over. It has no timer while nothing happens.
type memory struct {
	pool sync.Pool

	mu    sync.Mutex
	work  int // calls since memory was last given back
	timer *time.Timer
	armed bool
	shut  bool
}

// bufferSize takes one read of a pipe with the log's header before it.
const bufferSize = wire.LogHeaderLen + wire.MaxData

// A burst is this many calls; quiet is how long after the last of them.
const (
	burst = 64
	quiet = 3 * time.Second
)

func (m *memory) get() *[bufferSize]byte {
	if b, ok := m.pool.Get().(*[bufferSize]byte); ok {
		return b
	}
	return new([bufferSize]byte)
}

func (m *memory) put(b *[bufferSize]byte) { m.pool.Put(b) }

// used counts a call.
func (m *memory) used() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.work++; m.work < burst || m.armed || m.shut {
		return
	}
	m.armed = true
	seen := m.work
	m.timer = time.AfterFunc(quiet, func() { m.rest(&seen) })
}

// rest gives memory back if nothing was done since it last looked.
func (m *memory) rest(seen *int) {
	m.mu.Lock()
	if m.shut {
		m.mu.Unlock()
		return
	}
	if m.work != *seen {
		*seen = m.work
		m.timer.Reset(quiet)
		m.mu.Unlock()
		return
	}
	m.work, m.armed = 0, false
	m.mu.Unlock()
	debug.FreeOSMemory()
}

func (m *memory) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shut = true
	if m.timer != nil {
		m.timer.Stop()
	}
}
