// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"sandpit.dev/engine/archived"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Needs are what a Keeper takes of the engine beside its parts. All are required.
type Needs struct {
	Group func() *core.Group // the engine's
	// Turn takes the turn of a sandbox, until done, and returns its record; nil: it is deleted.
	Turn func(ctx context.Context, id sandbox.ID) (s *sandbox.Sandbox, done func(), err error)
}

// Keeper keeps disks for backups. It is safe for concurrent use.
type Keeper struct {
	core      *core.Core
	snapshots *snapshot.Keeper
	volumes   *volume.Keeper
	archived  *archived.Keeper
	n         Needs
}

// New makes one. It starts nothing.
func New(c *core.Core, s *snapshot.Keeper, v *volume.Keeper, a *archived.Keeper, n Needs) *Keeper {
	return &Keeper{c, s, v, a, n}
}

// backupBound bounds keeping one disk for a backup, the wait for its sandbox's turn included.
const backupBound = 5 * time.Minute

// Disk is a disk that is kept for a backup, as it was at one instant.
type Disk struct {
	export  func(context.Context, io.Writer) error
	release func()
}

// Export writes it; see [runtime.Archiver].
func (d *Disk) Export(ctx context.Context, w io.Writer) error { return d.export(ctx, w) }

// Release lets go of it. Call it once.
func (d *Disk) Release() { d.release() }

// Sandbox keeps the disk of a sandbox for a backup, in its turn: its processes stand still for
// an instant. That of one that is archived is read from there. A sandbox that is not there is NotFound, and a disk that is not there State.
func (k *Keeper) Sandbox(ctx context.Context, id sandbox.ID) (*Disk, error) {
	var elsewhere *Disk
	kept, err := k.keepDisk(ctx, func(ctx context.Context) (*toKeep, error) {
		s, done, err := k.n.Turn(ctx, id)
		if err != nil {
			return nil, err
		}
		if s == nil {
			done()
			return nil, core.NoSandbox(string(id))
		}
		if s.State == sandbox.Archived {
			defer done()
			elsewhere, err = k.keepArchived(ctx, s)
			return nil, cmp.Or(err, errElsewhere)
		}
		return &toKeep{s.Project, s.Runtime, int64(s.Limits.DiskMB) << 20, func(as sandbox.ID) (int64, error) {
			d, err := k.snapshots.Driver(s.Runtime)
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

// Volume keeps what a volume holds for a backup. A volume that is not there is NotFound.
func (k *Keeper) Volume(ctx context.Context, id sandbox.ID) (*Disk, error) {
	return k.keepDisk(ctx, func(ctx context.Context) (*toKeep, error) {
		done, err := k.core.Holds.Share(ctx, id)
		if err != nil {
			return nil, err
		}
		var v *sandbox.Volume
		err = k.core.Store.View(ctx, func(tx store.Tx) (err error) {
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
			a, err := k.snapshots.Archiver(v.Runtime)
			if err != nil {
				return 0, err
			}
			err = a.KeepVolume(ctx, id, as)
			if fault.Is(err, fault.NotFound) {
				err = fault.Wrap(fault.State, err, "the disk of the volume %s is gone from this host", v.Name)
			}
			return k.volumes.Usage(ctx, v), err
		}, done}, nil
	})
}

// Snapshot holds a snapshot for a backup: it is not deleted meanwhile. One that is not there
// is NotFound.
func (k *Keeper) Snapshot(ctx context.Context, id sandbox.ID) (*Disk, error) {
	if err := k.n.Group().Enter(); err != nil {
		return nil, err
	}
	release, err := k.core.Holds.Share(ctx, id)
	if err != nil {
		k.n.Group().Leave()
		return nil, err
	}
	done := func() { release(); k.n.Group().Leave() }
	var snap *sandbox.Snapshot
	err = k.core.Store.View(ctx, func(tx store.Tx) (err error) {
		snap, err = tx.Snapshots().Get(id)
		return err
	})
	if err == nil && snap.State != sandbox.SnapshotReady {
		err = fault.New(fault.NotFound, "the snapshot %s is not there", id)
	}
	var a runtime.Archiver
	if err == nil {
		a, err = k.archived.Archiver(snap)
	}
	if err != nil {
		done()
		return nil, err
	}
	export := k.exporting(a, id, max(snap.SizeBytes, int64(snap.Limits.DiskMB)<<20))
	return &Disk{func(ctx context.Context, w io.Writer) error {
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
func (k *Keeper) keepDisk(ctx context.Context, prepare func(context.Context) (*toKeep, error)) (_ *Disk, err error) {
	if err := k.n.Group().Enter(); err != nil {
		return nil, err
	}
	ok := false
	defer func() {
		if !ok {
			k.n.Group().Leave()
		}
	}()
	bound, cancel := k.n.Group().Bind(ctx)
	defer cancel()
	bound, enough := context.WithTimeout(bound, backupBound)
	defer enough()
	disk, err := prepare(bound)
	if err != nil {
		return nil, err
	}
	defer disk.done()
	a, err := k.snapshots.Archiver(disk.runtime)
	if err != nil {
		return nil, err
	}
	snap := &sandbox.Snapshot{
		ID: sandbox.NewID(), Project: disk.project, Runtime: disk.runtime, State: sandbox.SnapshotCreating, SizeBytes: -1,
		CreatedAt: k.core.Now(), CreatedBy: core.System.Name, Detail: "for a backup",
	}
	var size int64
	release, err := k.snapshots.Borrow(bound, snap, "backup.intent", func() (err error) {
		size, err = disk.keep(snap.ID)
		k.core.Checkpoint("backup.done")
		return err
	})
	if err != nil {
		return nil, err
	}
	ok = true
	return &Disk{k.exporting(a, snap.ID, max(size, disk.limit)), func() { release(); k.n.Group().Leave() }}, nil
}

// exporting writes a disk that holds so many bytes, and ends with the engine.
func (k *Keeper) exporting(a runtime.Archiver, id sandbox.ID, holds int64) func(context.Context, io.Writer) error {
	return func(ctx context.Context, w io.Writer) error {
		bound, cancel := k.n.Group().Bind(ctx)
		defer cancel()
		err := a.ExportDisk(bound, id, core.Bounded(w, holds))
		if err != nil && bound.Err() != nil && ctx.Err() == nil {
			return core.Stopping()
		}
		return err
	}
}

// keepArchived holds the archive of a sandbox for a backup, which reads it as the disk.
func (k *Keeper) keepArchived(ctx context.Context, s *sandbox.Sandbox) (*Disk, error) {
	img, err := k.snapshots.Image(s.Image, s.ImageDigest)
	if err != nil {
		return nil, err
	}
	if err := k.n.Group().Enter(); err != nil {
		return nil, err
	}
	release, err := k.core.Holds.Share(ctx, s.Archive.ID)
	if err != nil {
		k.n.Group().Leave()
		return nil, err
	}
	return &Disk{func(ctx context.Context, w io.Writer) error {
		bound, cancel := k.n.Group().Bind(ctx)
		defer cancel()
		err := k.archived.Export(bound, s, img, w)
		if err != nil && bound.Err() != nil && ctx.Err() == nil {
			return core.Stopping()
		}
		return err
	}, func() { release(); k.n.Group().Leave() }}, nil
}
