// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/archived"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Archive packs the disk of a sandbox that is stopped, and keeps it elsewhere: see package archived. A start
// brings it back. One that is archived already is given as it is. One that runs is fault.State.
func (e *Engine) Archive(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	end, err := e.archived.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return e.verb(ctx, c, ref, archived.Bound, e.takeToWork, func(ctx context.Context, b held) error {
		return e.archive(ctx, b, core.ActorOf(c), core.ActorOf(c).Did("archived"))
	})
}

// archive archives a sandbox. The entry is reconciled.
func (e *Engine) archive(ctx context.Context, b held, who core.Actor, why string) error {
	s := b.record.Load()
	if s == nil || s.State == sandbox.Archived {
		return nil
	}
	img, err := e.imageKept(s.Image, s.ImageDigest)
	if err != nil {
		return err
	}
	defer e.plan(b.entry)
	return e.archived.Archive(ctx, s, img, who, why, e.archiveCommit(b))
}

func (e *Engine) archiveCommit(b held) archived.Commit {
	return func(ctx context.Context, change func(*sandbox.Sandbox), more func(store.Tx) error, events ...*sandbox.Event) error {
		return e.commitWith(ctx, b.entry, change, more, events...)
	}
}

// archiveBehind archives a sandbox for its clock. Others do not wait for that, as they do for what a clock does
// at once.
func (e *Engine) archiveBehind(b *entry) {
	e.retain(b)
	e.group.Spawn(func(ctx context.Context) {
		defer e.release(b)
		end, err := e.archived.Begin(ctx)
		if err != nil {
			return // the next server does it
		}
		defer end()
		err = e.turnWork(ctx, b, archived.Bound, e.takeToWork, func(ctx context.Context, b held) error {
			s := b.record.Load()
			if s == nil || s.State != sandbox.Stopped || s.ArchiveAfter <= 0 || e.now().Before(s.StoppedAt.Add(s.ArchiveAfter)) {
				return nil
			}
			return e.archive(ctx, b, core.System, fmt.Sprintf("it was stopped for %s s (archive_after), since %s (%s)",
				check.Seconds(s.ArchiveAfter), s.StoppedAt.UTC().Format(time.RFC3339), s.StopCause))
		})
		if err != nil && ctx.Err() == nil {
			e.core.Log.Error("a sandbox cannot be archived now; it is tried again", "sandbox", b.id, "error", err)
		}
	})
}

// unarchive starts a sandbox that is archived, however long its disk takes to come back.
func (e *Engine) unarchive(ctx context.Context, b held, who core.Actor) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), archived.Bound)
	defer cancel()
	s := b.record.Load()
	img, err := e.imageKept(s.Image, s.ImageDigest)
	if err != nil {
		return err
	}
	if err := e.archived.Unarchive(ctx, s, img, who, e.archiveCommit(b)); err != nil {
		return err
	}
	return e.start(ctx, b, who)
}

// reconcileArchive reconciles a sandbox that is Archiving or Unarchiving.
func (e *Engine) reconcileArchive(ctx context.Context, b held, why string) error {
	if err := e.archived.Reconcile(ctx, b.record.Load(), why, e.archiveCommit(b)); err != nil {
		return e.notReconciled(b.entry, err)
	}
	e.plan(b.entry)
	return nil
}
