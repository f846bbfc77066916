// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/sandbox"
)

// runJanitor fills pools and removes what no record owns, until ctx is done.
func (e *Engine) runJanitor(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := time.Now().Add(e.janitor.Tick())
	for {
		wait := e.pools.Fill()
		if at := time.Now(); !at.Before(next) {
			e.janitor.Tidy(ctx, at)
			next = at.Add(e.janitor.Tick())
		}
		timer.Reset(min(wait, time.Until(next)))
		select {
		case <-ctx.Done():
			return
		case <-e.pools.Changed():
		case <-timer.C:
		}
	}
}

// inMemory reports whether a verb is at the sandbox, or it runs.
func (e *Engine) inMemory(id sandbox.ID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.entries[id] != nil
}
