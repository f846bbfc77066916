// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
	"time"

	"sandpit.dev/agent/wire"
)

var longAgo = time.Unix(1, 0)

// memory lends buffers.
type memory struct{ pool sync.Pool }

// bufferSize takes one read of a pipe with the log's header before it.
const bufferSize = wire.LogHeaderLen + wire.MaxData

// After so many calls, and so long without one, memory is given back to the kernel.
const (
	memoryBurst = 64
	memoryQuiet = 3 * time.Second
)

func (m *memory) get() *[bufferSize]byte {
	if b, ok := m.pool.Get().(*[bufferSize]byte); ok {
		return b
	}
	return new([bufferSize]byte)
}

func (m *memory) put(b *[bufferSize]byte) { m.pool.Put(b) }
