// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/archived"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// What a comparison is of, and its bounds; see package snapshot.
type DiffRequest = snapshot.DiffRequest

const (
	DefaultDiff = snapshot.DefaultDiff
	MaxDiff     = snapshot.MaxDiff
)

// diffBound bounds a comparison.
const diffBound = 10 * time.Minute

// Diff returns what changed in a sandbox's disk on the way from one point to another,
// by absolute path; of more than the limit it gives the first, and how many there are.
// It works on a sandbox that is down as well, and starts none.
func (e *Engine) Diff(ctx context.Context, c access.Caller, ref string, r DiffRequest) (sandbox.Changes, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return sandbox.Changes{}, err
	}
	defer e.group.Leave()
	if err := r.Check(); err != nil {
		return sandbox.Changes{}, err
	}
	b, err := e.find(ctx, c, ref)
	if err != nil {
		return sandbox.Changes{}, err
	}
	defer e.release(b)
	b.touch(e.now(), actCall)
	bound, cancel := e.group.Bind(ctx)
	defer cancel()
	var changes sandbox.Changes
	// In the sandbox's turn, so that its disk is not exchanged under the comparison.
	err = e.turnWork(bound, b, diffBound, e.take, func(ctx context.Context, b held) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(bound, cancel)() // nobody wants the rest
		got, err := e.diff(ctx, b, r)
		changes = got
		return err
	})
	if err != nil {
		if bound.Err() != nil && ctx.Err() == nil {
			err = core.Stopping()
		}
		return sandbox.Changes{}, err
	}
	return changes, nil
}

func (e *Engine) diff(ctx context.Context, b held, r DiffRequest) (sandbox.Changes, error) {
	s := b.record.Load()
	if s == nil {
		return sandbox.Changes{}, core.NoSandbox(string(b.id))
	}
	if r.From == snapshot.PointNow || r.To == snapshot.PointNow {
		if err := archived.Refuse(s, "compared with"); err != nil {
			return sandbox.Changes{}, err
		}
	}
	return e.snapshots.Diff(ctx, s, r)
}

// View opens the files of a sandbox's disk at a point in time, or with of empty those of a snapshot that is named by itself. It uses
// nothing of the sandbox, which need not be up. The caller is in a verb that it has entered.
func (e *Engine) View(ctx context.Context, c access.Caller, of, at string) (runtime.View, error) {
	if of == "" {
		return e.snapshots.ViewOf(ctx, c.Project, at)
	}
	b, err := e.find(ctx, c, of)
	if err != nil {
		return nil, err
	}
	defer e.release(b)
	s := b.record.Load()
	if s == nil {
		return nil, core.NoSandbox(of)
	}
	if at == snapshot.PointNow {
		if err := archived.Refuse(s, "read"); err != nil {
			return nil, err
		}
	}
	return e.snapshots.View(ctx, s, at)
}
