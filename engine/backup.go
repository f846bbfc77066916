// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine/backups"
	"sandpit.dev/sandbox"
)

// MayBackUp is nil for the server's own administrator alone: a backup has all of every project.
func (e *Engine) MayBackUp(c access.Caller) error {
	if err := c.Require(access.ServerAdmin); err != nil {
		return err
	}
	return e.Ready()
}

// Backups returns what keeps disks for backups.
func (e *Engine) Backups() *backups.Keeper { return e.backups }

// turnOf takes the turn of a sandbox that need not be reconciled, until done, and returns its record; nil: it is deleted.
func (e *Engine) turnOf(ctx context.Context, id sandbox.ID) (s *sandbox.Sandbox, done func(), err error) {
	b, err := e.acquire(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	own, err := b.take(ctx)
	if err != nil {
		e.release(b)
		return nil, nil, err
	}
	return b.record.Load(), func() { own.release(); e.release(b) }, nil
}
