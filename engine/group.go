// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"
)

// work is core.Group's Work; an error that nobody takes is logged.
func (e *Engine) work(ctx context.Context, bound time.Duration, do func(context.Context) error, orphaned func(context.Context)) error {
	return e.group.Work(ctx, bound, do, orphaned, func(err error) { e.core.Log.Warn("a verb failed after its caller had gone", "error", err) })
}

// Bounds of work that nobody waits for any more. They hold off a driver or a
// store that hangs; in health none is ever reached.
const (
	createBound    = 2 * time.Minute
	startBound     = 2 * time.Minute
	stopBound      = time.Minute // and the grace
	deleteBound    = 2 * time.Minute
	pauseBound     = time.Minute
	updateBound    = 30 * time.Second
	reconcileBound = 2 * time.Minute
	commitBound    = 30 * time.Second
)
