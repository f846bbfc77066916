// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// backupBound bounds keeping one disk for a backup, the wait for its sandbox's turn included.
const backupBound = 5 * time.Minute

// KeptDisk is a disk that is kept for a backup, as it was at one instant.
type KeptDisk struct {
	export  func(context.Context, io.Writer) error
	release func()
}

// Export writes it; see [runtime.Archiver].
func (k *KeptDisk) Export(ctx context.Context, w io.Writer) error { return k.export(ctx, w) }

// Release lets go of it. Call it once.
func (k *KeptDisk) Release() { k.release() }

// MayBackUp is nil for the server's own administrator alone: a backup has all of every project.
func (e *Engine) MayBackUp(c access.Caller) error {
	if err := c.Require(access.ServerAdmin); err != nil {
		return err
	}
	return e.Ready()
}

// KeepSandbox keeps the disk of a sandbox for a backup, in its turn: its processes stand still for
// an instant. That of one that is archived is read from there. A sandbox that is not there is NotFound, and a disk that is not there State.
func (e *Engine) KeepSandbox(ctx context.Context, id sandbox.ID) (*KeptDisk, error) {
	var elsewhere *KeptDisk
	kept, err := e.keepDisk(ctx, func(ctx context.Context) (*toKeep, error) {
		b, err := e.acquire(ctx, id)
		if err != nil {
			return nil, err
		}
		own, err := b.take(ctx)
		if err != nil {
			e.release(b)
			return nil, err
		}
		done := func() { own.release(); e.release(b) }
		s := b.record.Load()
		if s == nil {
			done()
			return nil, core.NoSandbox(string(id))
		}
		if s.State == sandbox.Archived {
			defer done()
			elsewhere, err = e.keepArchived(ctx, s)
			return nil, cmp.Or(err, errElsewhere)
		}
		return &toKeep{s.Project, s.Runtime, int64(s.Limits.DiskMB) << 20, func(as sandbox.ID) (int64, error) {
			d, err := e.snapshots.Driver(s.Runtime)
			if err != nil {
				return 0, err
			}
			got, err := d.Snapshot(ctx, id, as)
			if fault.Is(err, fault.NotFound) {
				err = core.NoDisk(id, err)
			}
			return got.SizeBytes, err
		}, done}, nil
	})
	if err == errElsewhere {
		return elsewhere, nil
	}
	return kept, err
}

// errElsewhere is why a disk is not kept: the sandbox is archived.
var errElsewhere = errors.New("the disk is in the archive")

// KeepVolume keeps what a volume holds for a backup. A volume that is not there is NotFound.
func (e *Engine) KeepVolume(ctx context.Context, id sandbox.ID) (*KeptDisk, error) {
	return e.keepDisk(ctx, func(ctx context.Context) (*toKeep, error) {
		done, err := e.core.Holds.Share(ctx, id)
		if err != nil {
			return nil, err
		}
		var v *sandbox.Volume
		err = e.core.Store.View(ctx, func(tx store.Tx) (err error) {
			v, err = tx.Volumes().Get(id)
			return err
		})
		if err == nil && v.State != sandbox.VolumeReady {
			err = volume.NotFound(string(id))
		}
		if err != nil {
			done()
			return nil, err
		}
		return &toKeep{v.Project, v.Runtime, int64(v.SizeMB) << 20, func(as sandbox.ID) (int64, error) {
			a, err := e.snapshots.Archiver(v.Runtime)
			if err != nil {
				return 0, err
			}
			err = a.KeepVolume(ctx, id, as)
			if fault.Is(err, fault.NotFound) {
				err = fault.Wrap(fault.State, err, "the disk of the volume %s is gone from this host", v.Name)
			}
			return e.volumes.Usage(ctx, v), err
		}, done}, nil
	})
}

// KeepSnapshot holds a snapshot for a backup: it is not deleted meanwhile. One that is not there
// is NotFound.
func (e *Engine) KeepSnapshot(ctx context.Context, id sandbox.ID) (*KeptDisk, error) {
	if err := e.group.Enter(); err != nil {
		return nil, err
	}
	release, err := e.core.Holds.Share(ctx, id)
	if err != nil {
		e.group.Leave()
		return nil, err
	}
	done := func() { release(); e.group.Leave() }
	var snap *sandbox.Snapshot
	err = e.core.Store.View(ctx, func(tx store.Tx) (err error) {
		snap, err = tx.Snapshots().Get(id)
		return err
	})
	if err == nil && snap.State != sandbox.SnapshotReady {
		err = fault.New(fault.NotFound, "the snapshot %s is not there", id)
	}
	var a runtime.Archiver
	if err == nil {
		a, err = e.archived.Archiver(snap)
	}
	if err != nil {
		done()
		return nil, err
	}
	export := e.exporting(a, id, max(snap.SizeBytes, int64(snap.Limits.DiskMB)<<20))
	return &KeptDisk{func(ctx context.Context, w io.Writer) error {
		err := export(ctx, w)
		if fault.Is(err, fault.NotFound) {
			err = fault.Wrap(fault.State, err, "the disk of the snapshot %s is gone from this host", id)
		}
		return err
	}, done}, nil
}

// toKeep is a disk that a backup is to keep.
type toKeep struct {
	project, runtime string
	limit            int64                              // of the disk in bytes; 0: none
	keep             func(as sandbox.ID) (int64, error) // gives what it holds in bytes; -1: not counted
	done             func()                             // once it is kept, or not
}

// keepDisk takes a snapshot for a backup alone. Its record belongs to no sandbox and is never
// ready: nobody sees it, and the repair removes it.
func (e *Engine) keepDisk(ctx context.Context, prepare func(context.Context) (*toKeep, error)) (_ *KeptDisk, err error) {
	if err := e.group.Enter(); err != nil {
		return nil, err
	}
	ok := false
	defer func() {
		if !ok {
			e.group.Leave()
		}
	}()
	bound, cancel := e.group.Bind(ctx)
	defer cancel()
	bound, enough := context.WithTimeout(bound, backupBound)
	defer enough()
	disk, err := prepare(bound)
	if err != nil {
		return nil, err
	}
	defer disk.done()
	a, err := e.snapshots.Archiver(disk.runtime)
	if err != nil {
		return nil, err
	}
	snap := &sandbox.Snapshot{
		ID: sandbox.NewID(), Project: disk.project, Runtime: disk.runtime, State: sandbox.SnapshotCreating, SizeBytes: -1,
		CreatedAt: e.now(), CreatedBy: core.System.Name, Detail: "for a backup",
	}
	var size int64
	release, err := e.snapshots.Borrow(bound, snap, "backup.intent", func() (err error) {
		size, err = disk.keep(snap.ID)
		e.core.Checkpoint("backup.done")
		return err
	})
	if err != nil {
		return nil, err
	}
	ok = true
	return &KeptDisk{e.exporting(a, snap.ID, max(size, disk.limit)), func() { release(); e.group.Leave() }}, nil
}

// exporting writes a disk that holds so many bytes, and ends with the engine.
func (e *Engine) exporting(a runtime.Archiver, id sandbox.ID, holds int64) func(context.Context, io.Writer) error {
	return func(ctx context.Context, w io.Writer) error {
		bound, cancel := e.group.Bind(ctx)
		defer cancel()
		err := a.ExportDisk(bound, id, core.Bounded(w, holds))
		if err != nil && bound.Err() != nil && ctx.Err() == nil {
			return core.Stopping()
		}
		return err
	}
}
