// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"io"
	"os"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var (
	_ runtime.Snapshotter  = (*Driver)(nil)
	_ runtime.Archiver     = (*Driver)(nil)
	_ runtime.DiskImporter = (*Driver)(nil)
)

// littleUnwritten is how many bytes of data are rather written while an instance stands
// still: it takes less than a millisecond.
const littleUnwritten = 256 << 10

// Snapshot keeps an instance's disk. See [runtime.Snapshotter].
//
// What is written to one file and then to another may be kept of the second alone
// while processes run: so they stand still meanwhile. What waits to be written
// is written before that, and they stand no longer than the snapshot itself takes.
func (d *Driver) Snapshot(ctx context.Context, of, id sandbox.ID) (runtime.Snapshot, error) {
	if err := checkSnapshotID(id); err != nil {
		return runtime.Snapshot{}, err
	}
	i, err := d.instance(ctx, of)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	i.verb.Lock()
	defer i.verb.Unlock()
	defer d.inflight.begin()()
	thaw, err := i.still(ctx)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	size, err := d.layers.Snapshot(ctx, string(of), string(id))
	d.checkpoint("snapshot.taken")
	if frozen := thaw(); err == nil && frozen != nil {
		_ = d.layers.RemoveSnapshot(string(id))
		err = frozen
	}
	if err != nil {
		return runtime.Snapshot{}, err
	}
	d.checkpoint("snapshot.thawed")
	return runtime.Snapshot{SizeBytes: size}, nil
}

// still makes the instance stand still, with verb held, and gives what lets it go on.
// One that is paused or down stands still already.
func (i *Instance) still(ctx context.Context) (thaw func() error, err error) {
	nothing := func() error { return nil }
	l, err := i.running()
	switch {
	case fault.Is(err, fault.State):
		return nothing, nil
	case err != nil:
		return nil, err
	case i.Paused():
		return nothing, nil
	}
	if err := i.d.cgroups.Info().Err(cgroup.Freeze); err != nil {
		return nil, err
	}
	if n := i.d.layers.Unwritten(string(i.id)); n < 0 || n > littleUnwritten {
		if err := i.d.layers.Flush(ctx, string(i.id)); err != nil {
			return nil, err
		}
	}
	i.d.checkpoint("snapshot.synced")
	if err := i.freeze(ctx, l); fault.Is(err, fault.State) { // it ended meanwhile
		select {
		case <-l.down:
			return nothing, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	} else if err != nil {
		return nil, err
	}
	i.d.checkpoint("snapshot.frozen")
	return func() error {
		err := i.thaw(l)
		if fault.Is(err, fault.State) { // it ended meanwhile
			return nil
		}
		if err != nil {
			i.thawLater(l)
		}
		return err
	}, nil
}

// Rollback exchanges an instance's disk. See [runtime.Snapshotter].
func (d *Driver) Rollback(ctx context.Context, of, from sandbox.ID, l sandbox.Limits) error {
	i, err := d.instance(ctx, of)
	if err != nil {
		return err
	}
	i.verb.Lock()
	defer i.verb.Unlock()
	switch _, err := i.running(); {
	case err == nil:
		return fault.New(fault.State, "sandbox %s is running", of).WithRemedy("stop it first")
	case !fault.Is(err, fault.State):
		return err
	}
	if err := d.layers.Exchange(ctx, string(of), string(from), int64(l.DiskMB)<<20, ctx.Err); err != nil {
		return err
	}
	d.layers.CommitCopies()
	d.checkpoint("rollback.exchanged")
	i.mu.Lock()
	i.leaving = nil // who mounts the new disk does not wait for the old one's overlay
	i.mu.Unlock()
	return nil
}

// Snapshots lists what is kept. See [runtime.Snapshotter].
func (d *Driver) Snapshots(context.Context) ([]sandbox.ID, error) {
	names, err := d.layers.Snapshots()
	if err != nil {
		return nil, err
	}
	ids := make([]sandbox.ID, len(names))
	for n, name := range names {
		ids[n] = sandbox.ID(name)
	}
	return ids, nil
}

// RemoveSnapshot deletes one. See [runtime.Snapshotter].
func (d *Driver) RemoveSnapshot(_ context.Context, id sandbox.ID) error {
	return d.layers.RemoveSnapshot(string(id))
}

// Diff compares two points. See [runtime.Snapshotter]. What is written to an instance
// meanwhile is in it or not.
func (d *Driver) Diff(ctx context.Context, img runtime.Image, from, to runtime.Point, limit int) (sandbox.Changes, error) {
	image, err := os.Open(img.Root)
	if err != nil {
		return sandbox.Changes{}, fault.Wrap(fault.Unavailable, err, "the image's root cannot be opened")
	}
	defer func() { _ = image.Close() }()
	c, err := d.layers.Diff(ctx, image, pointOf(from), pointOf(to), limit)
	if err != nil {
		return sandbox.Changes{}, err
	}
	got := sandbox.Changes{Files: make([]sandbox.FileChange, len(c.Files)), Total: c.Total, Complete: c.Complete}
	for n, f := range c.Files {
		got.Files[n] = sandbox.FileChange{Path: f.Path, Escaped: f.Escaped, Action: string(f.Action), Size: f.Size}
	}
	return got, nil
}

func pointOf(p runtime.Point) layer.Point {
	if p.Instance != "" {
		return layer.Point(p.Instance)
	}
	return layer.Point(p.Snapshot)
}

// Export writes a snapshot as an archive. See [runtime.Snapshotter].
func (d *Driver) Export(ctx context.Context, id sandbox.ID, w io.Writer) error {
	return d.layers.Export(ctx, string(id), w)
}

// ExportDisk writes a disk for a backup. See [runtime.Archiver].
func (d *Driver) ExportDisk(ctx context.Context, id sandbox.ID, w io.Writer) error {
	return d.layers.ExportDisk(ctx, string(id), w)
}

// Import makes a snapshot of an archive. See [runtime.Snapshotter].
func (d *Driver) Import(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64) (runtime.Snapshot, error) {
	if err := checkSnapshotID(id); err != nil {
		return runtime.Snapshot{}, err
	}
	size, err := d.layers.Import(ctx, string(id), r, maxBytes)
	return runtime.Snapshot{SizeBytes: size}, err
}

// ImportDisk makes a snapshot of an archive of ExportDisk. See [runtime.DiskImporter].
func (d *Driver) ImportDisk(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64) (runtime.Snapshot, error) {
	if err := checkSnapshotID(id); err != nil {
		return runtime.Snapshot{}, err
	}
	size, err := d.layers.ImportSnapshot(ctx, string(id), r, maxBytes)
	return runtime.Snapshot{SizeBytes: size}, err
}

func checkSnapshotID(id sandbox.ID) error {
	if sandbox.ValidID(string(id)) {
		return nil
	}
	return fault.InvalidField("id", "%q is not a valid snapshot id", sandbox.Clip(string(id), 40))
}

// instance returns one that exists, up or down.
func (d *Driver) instance(ctx context.Context, id sandbox.ID) (*Instance, error) {
	i, err := d.Open(ctx, runtime.Handle{ID: id})
	if err != nil {
		return nil, err
	}
	return i.(*Instance), nil
}
