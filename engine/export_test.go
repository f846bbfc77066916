// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"
)

// Recorded waits until the results that callers have are in the store.
func (e *Engine) Recorded(ctx context.Context) error {
	return e.outcomes.WaitFor(ctx, func(*entry) bool { return true })
}

// Held counts what the engine keeps in memory.
func (e *Engine) Held() (boxes, names, keys, alarms int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.entries), len(e.names), e.keys.Len(), e.clock.Len()
}

// StoodStill is what the clock does when a wait of its own ended late by so much.
func (e *Engine) StoodStill(by time.Duration) { e.stoodStill(by) }
