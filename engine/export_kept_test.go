// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/sandbox"
)

// Strike does at once what the clock does at an alarm.
func (e *Engine) Strike(ctx context.Context, id sandbox.ID) { e.expire(ctx, id) }

// Impatient has deletions wait only so long for those who use a snapshot.
func (e *Engine) Impatient(d time.Duration) { e.core.Holds.Patience = d }

// HeldSnapshots counts the snapshots that are in use, or waited for.
func (e *Engine) HeldSnapshots() int {
	return e.core.Holds.Len()
}
