// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

// Held counts what the engine keeps in memory.
func (e *Engine) Held() (boxes, names, keys, alarms int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clock.mu.Lock()
	defer e.clock.mu.Unlock()
	return len(e.boxes), len(e.names), len(e.keys), len(e.clock.heap)
}
