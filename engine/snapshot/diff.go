// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"

	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Points in time that are no snapshots.
const (
	PointNow   = "now"   // the disk as it is
	PointBase  = "base"  // the image: nothing was changed
	PointFresh = "fresh" // the same, to go back to
)

// Bounds of a comparison.
const (
	DefaultDiff = 1000  // entries of a request that names no limit
	MaxDiff     = 10000 // entries
)

// DiffRequest names two points in time: a snapshot, as for a rollback, "base" (the
// image) or "now".
type DiffRequest struct {
	From  string // empty: "base"
	To    string // empty: "now"
	Limit int    // entries; at most MaxDiff, zero: DefaultDiff
}

// Check fills in what is left out, or returns fault.Invalid.
func (r *DiffRequest) Check() error {
	if r.Limit < 0 || r.Limit > MaxDiff {
		return fault.InvalidField("limit", "%d is outside 0 to %d (0: %d)", r.Limit, MaxDiff, DefaultDiff)
	}
	r.From, r.To, r.Limit = cmp.Or(r.From, PointBase), cmp.Or(r.To, PointNow), cmp.Or(r.Limit, DefaultDiff)
	return nil
}

// Diff compares two points in time of a sandbox's disk, which is not exchanged or archived meanwhile. The request is checked.
func (k *Keeper) Diff(ctx context.Context, s *sandbox.Sandbox, r DiffRequest) (sandbox.Changes, error) {
	d, err := k.Driver(s.Runtime)
	if err != nil {
		return sandbox.Changes{}, err
	}
	img, err := k.Image(s.Image, s.ImageDigest)
	if err != nil {
		return sandbox.Changes{}, err
	}
	a, release, err := k.point(ctx, s, r.From)
	if err != nil {
		return sandbox.Changes{}, err
	}
	defer release()
	b, release, err := k.point(ctx, s, r.To)
	if err != nil {
		return sandbox.Changes{}, err
	}
	defer release()
	return d.Diff(ctx, core.Spec(s, img).Image, a, b, r.Limit)
}

// point is a point in time as the driver names it, held until released.
func (k *Keeper) point(ctx context.Context, s *sandbox.Sandbox, ref string) (runtime.Point, func(), error) {
	switch ref {
	case PointNow:
		return runtime.Point{Instance: s.ID}, func() {}, nil
	case PointBase, PointFresh:
		return runtime.Point{}, func() {}, nil
	}
	snap, release, err := k.Hold(ctx, s.Project, string(s.ID), ref)
	if err != nil {
		return runtime.Point{}, nil, err
	}
	if err := Fits(s, snap); err != nil {
		release()
		return runtime.Point{}, nil, err
	}
	return runtime.Point{Snapshot: snap.ID}, release, nil
}
