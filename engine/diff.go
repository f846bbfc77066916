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
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Bounds of a comparison.
const (
	DefaultDiff = 1000  // entries of a request that names no limit
	MaxDiff     = 10000 // entries

	diffBound = 10 * time.Minute
)

// DiffRequest names two points in time: a snapshot, as for Rollback, "base" (the
// image) or "now".
type DiffRequest struct {
	From  string // empty: "base"
	To    string // empty: "now"
	Limit int    // entries; at most MaxDiff, zero: DefaultDiff
}

// Diff returns what changed in a sandbox's disk on the way from one point to another,
// by absolute path; of more than the limit it gives the first, and how many there are.
// It works on a sandbox that is down as well, and starts none.
func (e *Engine) Diff(ctx context.Context, c access.Caller, ref string, r DiffRequest) (sandbox.Changes, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return sandbox.Changes{}, err
	}
	defer e.group.Leave()
	if r.Limit < 0 || r.Limit > MaxDiff {
		return sandbox.Changes{}, fault.InvalidField("limit", "%d is outside 0 to %d (0: %d)", r.Limit, MaxDiff, DefaultDiff)
	}
	if r.Limit == 0 {
		r.Limit = DefaultDiff
	}
	if r.From == "" {
		r.From = pointBase
	}
	if r.To == "" {
		r.To = pointNow
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
	d, err := e.snapshots.Driver(s.Runtime)
	if err != nil {
		return sandbox.Changes{}, err
	}
	img, err := e.imageKept(s.Image, s.ImageDigest)
	if err != nil {
		return sandbox.Changes{}, err
	}
	from, release, err := e.point(ctx, s, r.From)
	if err != nil {
		return sandbox.Changes{}, err
	}
	defer release()
	to, release, err := e.point(ctx, s, r.To)
	if err != nil {
		return sandbox.Changes{}, err
	}
	defer release()
	return d.Diff(ctx, core.Spec(s, img).Image, from, to, r.Limit)
}

// point is a point in time as the driver names it, held until released.
func (e *Engine) point(ctx context.Context, s *sandbox.Sandbox, ref string) (runtime.Point, func(), error) {
	switch ref {
	case pointNow:
		return runtime.Point{Instance: s.ID}, func() {}, archived.Refuse(s, "compared with")
	case pointBase, pointFresh:
		return runtime.Point{}, func() {}, nil
	}
	snap, release, err := e.snapshots.Hold(ctx, s.Project, string(s.ID), ref)
	if err != nil {
		return runtime.Point{}, nil, err
	}
	if err := snapshot.Fits(s, snap); err != nil {
		release()
		return runtime.Point{}, nil, err
	}
	return runtime.Point{Snapshot: snap.ID}, release, nil
}
