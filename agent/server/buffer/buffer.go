// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"sync"

	"sandpit.dev/agent/wire"
)

// Pool lends buffers. Its zero value is one without any. It is safe for concurrent use.
type Pool struct{ pool sync.Pool }

// Size takes one read of a pipe with the log's header before it.
const Size = wire.LogHeaderLen + wire.MaxData

// Get returns a buffer, whose bytes may be anybody's.
func (m *Pool) Get() *[Size]byte {
	if b, ok := m.pool.Get().(*[Size]byte); ok {
		return b
	}
	return new([Size]byte)
}

// Put takes a buffer back: it is used by others from then on.
func (m *Pool) Put(b *[Size]byte) { m.pool.Put(b) }
