// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"io"

	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// The driver's half of snapshots and volumes, as the hooks see it: "snapshot",
// "rollback", "remove snapshot", "diff", "export", "import", "create volume" and
// "remove volume".
var (
	_ runtime.Snapshotter = (*faulty)(nil)
	_ runtime.Volumer     = (*faulty)(nil)
)

func (f *faulty) snapshots() runtime.Snapshotter { return f.Driver.(runtime.Snapshotter) }
func (f *faulty) volumes() runtime.Volumer       { return f.Driver.(runtime.Volumer) }

func (f *faulty) Snapshot(ctx context.Context, of, id sandbox.ID) (s runtime.Snapshot, err error) {
	err = f.call(ctx, "snapshot", func() (err error) {
		s, err = f.snapshots().Snapshot(ctx, of, id)
		return err
	})
	if err != nil { // all or nothing holds for a driver that fails late, too
		_ = f.snapshots().RemoveSnapshot(context.WithoutCancel(ctx), id)
	}
	return s, err
}

func (f *faulty) Rollback(ctx context.Context, of, from sandbox.ID, l sandbox.Limits) error {
	return f.call(ctx, "rollback", func() error { return f.snapshots().Rollback(ctx, of, from, l) })
}

func (f *faulty) Snapshots(ctx context.Context) ([]sandbox.ID, error) {
	return f.snapshots().Snapshots(ctx)
}

func (f *faulty) RemoveSnapshot(ctx context.Context, id sandbox.ID) error {
	return f.call(ctx, "remove snapshot", func() error { return f.snapshots().RemoveSnapshot(ctx, id) })
}

func (f *faulty) Diff(ctx context.Context, img runtime.Image, from, to runtime.Point, limit int) (c sandbox.Changes, err error) {
	err = f.call(ctx, "diff", func() (err error) {
		c, err = f.snapshots().Diff(ctx, img, from, to, limit)
		return err
	})
	return c, err
}

func (f *faulty) Export(ctx context.Context, id sandbox.ID, w io.Writer) error {
	return f.call(ctx, "export", func() error { return f.snapshots().Export(ctx, id, w) })
}

func (f *faulty) Import(ctx context.Context, id sandbox.ID, r io.Reader, most int64) (s runtime.Snapshot, err error) {
	err = f.call(ctx, "import", func() (err error) {
		s, err = f.snapshots().Import(ctx, id, r, most)
		return err
	})
	if err != nil {
		_ = f.snapshots().RemoveSnapshot(context.WithoutCancel(ctx), id)
	}
	return s, err
}

func (f *faulty) CreateVolume(ctx context.Context, id sandbox.ID, limit int64) error {
	return f.call(ctx, "create volume", func() error { return f.volumes().CreateVolume(ctx, id, limit) })
}

func (f *faulty) RemoveVolume(ctx context.Context, id sandbox.ID) error {
	return f.call(ctx, "remove volume", func() error { return f.volumes().RemoveVolume(ctx, id) })
}

func (f *faulty) VolumeUsage(ctx context.Context, id sandbox.ID) (int64, error) {
	return f.volumes().VolumeUsage(ctx, id)
}

func (f *faulty) Volumes(ctx context.Context) ([]sandbox.ID, error) { return f.volumes().Volumes(ctx) }

func (f *faulty) ExportDisk(ctx context.Context, id sandbox.ID, w io.Writer) error {
	return f.Export(ctx, id, w)
}

func (f *faulty) ImportDisk(ctx context.Context, id sandbox.ID, r io.Reader, most int64) (runtime.Snapshot, error) {
	return f.Import(ctx, id, r, most)
}
