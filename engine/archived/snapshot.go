// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package archived

import (
	"context"
	"errors"
	"io"

	"sandpit.dev/engine/archive"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func ofSnapshot(s *sandbox.Snapshot) disk {
	return disk{"the snapshot " + string(s.ID), "use it again; or delete the snapshot", s.Image, s.ImageDigest, s.Archive}
}

// ArchiveSnapshot archives a snapshot that was found, and returns it; one that is archived already is returned
// unchanged. It waits for users of the snapshot, and returns fault.Conflict when that takes long.
func (k *Keeper) ArchiveSnapshot(ctx context.Context, found *sandbox.Snapshot, who core.Actor) (*sandbox.Snapshot, error) {
	place, err := k.Place()
	if err != nil {
		return nil, err
	}
	d, err := core.Driver[runtime.DiskImporter](k.core, found.Runtime, "archives")
	if err != nil {
		return nil, err
	}
	end, err := k.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	give, err := k.core.Holds.OwnSoon(ctx, found.ID)
	if err != nil {
		return nil, err
	}
	defer give()
	snap, err := k.snapshots.Find(ctx, found.Project, "", string(found.ID))
	if err != nil || snap.Archived() {
		return snap, err
	}
	img, err := k.snapshots.Image(snap.Image, snap.ImageDigest)
	if err != nil {
		return nil, err
	}
	a := sandbox.Archive{ID: sandbox.NewID(), Place: place}
	err = k.record(ctx, snap.ID, a, nil, func(tx store.Tx) error {
		return tx.UnownedArchives().Put(store.UnownedArchive{ID: a.ID, Sandbox: snap.ID})
	})
	if err != nil {
		return nil, err
	}
	k.core.Checkpoint("snapshot.archive.intent")
	meta := archive.Meta{Image: snap.Image, ImageDigest: snap.ImageDigest, Limits: snap.Limits, Name: snap.Name, CreatedAt: snap.CreatedAt}
	packed, err := k.write(ctx, d, snap.ID, meta, img, a, max(snap.SizeBytes, int64(snap.Limits.DiskMB)<<20))
	if err != nil {
		return nil, k.undoSnapshot(ctx, snap, a, who, "archive: "+core.Reason(err), err)
	}
	a.Digest, a.PackedBytes, a.Bytes, a.At = packed.Digest, packed.PackedBytes, packed.Bytes, k.core.Now()
	ev := k.snapshots.Event(sandbox.EventSnapshotArchived, snap, who, who.Did("archived"))
	ev.Bytes = a.PackedBytes
	err = k.record(ctx, snap.ID, a, ev, func(tx store.Tx) error { return tx.UnownedArchives().Delete(a.ID) })
	if err != nil {
		k.core.Retry(snap.ID)
		return nil, err
	}
	k.core.Checkpoint("snapshot.archive.whole")
	snap.Archive = a
	if err := k.empty(ctx, snap); err != nil {
		k.core.Log.Error("a snapshot is in the archive, and its disk cannot be removed now; it is tried again", "snapshot", snap.ID, "error", err)
		k.core.Retry(snap.ID)
	}
	return snap, nil
}

// record commits where the archive of a snapshot is; all else of its record stays as it is by then.
func (k *Keeper) record(ctx context.Context, id sandbox.ID, a sandbox.Archive, ev *sandbox.Event, more func(store.Tx) error) error {
	err := k.core.Store.Update(ctx, func(tx store.Tx) error {
		snap, err := tx.Snapshots().Get(id)
		if err != nil {
			return err
		}
		snap.Archive = a
		if err := tx.Snapshots().Update(snap); err != nil {
			return err
		}
		if err := more(tx); err != nil || ev == nil {
			return err
		}
		return tx.Events().Append(ev)
	})
	if err == nil && ev != nil {
		k.core.Metrics.Happened([]*sandbox.Event{ev})
	}
	return err
}

// empty removes what the driver has of a snapshot that is archived.
func (k *Keeper) empty(ctx context.Context, snap *sandbox.Snapshot) error {
	d, err := k.snapshots.Driver(snap.Runtime)
	if err != nil {
		return err
	}
	if err := d.RemoveSnapshot(ctx, snap.ID); err != nil {
		return err
	}
	k.core.Checkpoint("snapshot.archive.emptied")
	return nil
}

// undoSnapshot takes an archive back that failed with err, before the record said that it is whole.
func (k *Keeper) undoSnapshot(ctx context.Context, snap *sandbox.Snapshot, a sandbox.Archive, who core.Actor, detail string, err error) error {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	ev := k.snapshots.Event(sandbox.EventFailed, snap, who, "")
	ev.OK, ev.ProcessID, ev.Detail = false, "", sandbox.Clip(detail, sandbox.MaxEventDetail)
	if dbErr := k.record(ctx, snap.ID, sandbox.Archive{}, ev, nothing); dbErr != nil {
		k.core.Log.Error("an archive that failed cannot be taken back; it is tried again", "snapshot", snap.ID, "error", dbErr)
		k.core.Retry(snap.ID)
		return errors.Join(err, dbErr)
	}
	k.core.Checkpoint("snapshot.archive.undone")
	k.core.Spawn(func(ctx context.Context) { k.removeSoon(ctx, a.ID) })
	return err
}

// Back brings the disk of an archived snapshot back. It goes on where ctx ends before that.
func (k *Keeper) Back(ctx context.Context, id sandbox.ID) error {
	done := make(chan error, 1)
	k.core.Spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, Bound)
		defer cancel()
		done <- k.unarchiveSnapshot(ctx, id)
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fault.Wrap(fault.Unavailable, ctx.Err(), "the snapshot %s is on its way back from the archive", id).
			WithRemedy("ask again in a while")
	}
}

func (k *Keeper) unarchiveSnapshot(ctx context.Context, id sandbox.ID) error {
	give, err := k.core.Holds.Own(ctx, id)
	if err != nil {
		return err
	}
	defer give()
	end, err := k.Begin(ctx) // who has a turn already does not wait for long for a snapshot
	if err != nil {
		return err
	}
	defer end()
	var snap *sandbox.Snapshot
	err = k.core.Store.View(ctx, func(tx store.Tx) (err error) {
		snap, err = tx.Snapshots().Get(id)
		return err
	})
	if err != nil || snap.State != sandbox.SnapshotReady || !snap.Archived() {
		return err // another one did it, or it is deleted
	}
	of := ofSnapshot(snap)
	if err := k.reachable(of); err != nil {
		return err
	}
	d, err := core.Driver[runtime.DiskImporter](k.core, snap.Runtime, "archives")
	if err != nil {
		return err
	}
	img, err := k.snapshots.Image(snap.Image, snap.ImageDigest)
	if err != nil {
		return err
	}
	if err := k.core.RoomFor(snap.Runtime); err != nil {
		return err
	}
	if err := k.empty(ctx, snap); err != nil { // of a crash, or a removal that failed
		return err
	}
	k.core.Checkpoint("snapshot.unarchive.begun")
	err = k.unpack(ctx, of, img, func(r io.Reader) error {
		_, err := d.ImportDisk(ctx, snap.ID, r, 2*snap.Archive.Bytes+64<<20)
		return err
	})
	if err != nil {
		return errors.Join(err, k.emptyAside(ctx, snap))
	}
	k.core.Checkpoint("snapshot.unarchive.unpacked")
	a := snap.Archive
	ev := k.snapshots.Event(sandbox.EventSnapshotUnarchived, snap, core.System, "its disk is back from the "+a.Place)
	ev.Bytes = a.PackedBytes
	err = k.record(ctx, snap.ID, sandbox.Archive{}, ev, func(tx store.Tx) error {
		return tx.UnownedArchives().Put(store.UnownedArchive{ID: a.ID, Sandbox: snap.ID})
	})
	if err != nil {
		k.core.Retry(snap.ID)
		return err
	}
	k.core.Checkpoint("snapshot.unarchive.outcome")
	k.core.Spawn(func(ctx context.Context) { k.removeSoon(ctx, a.ID) })
	return nil
}

func (k *Keeper) emptyAside(ctx context.Context, snap *sandbox.Snapshot) error {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	err := k.empty(ctx, snap)
	if err != nil {
		k.core.Retry(snap.ID)
	}
	return err
}

// ReconcileSnapshot finishes or undoes what was begun with the archive of a snapshot. The caller has it alone.
func (k *Keeper) ReconcileSnapshot(ctx context.Context, snap *sandbox.Snapshot) error {
	if snap.Archived() {
		return k.empty(ctx, snap)
	}
	return k.undoSnapshot(ctx, snap, snap.Archive, core.System, "archive: undone; the server ended", nil)
}

// Archiver returns what a backup reads the disk of a snapshot from: the archive if it is there, else its driver.
func (k *Keeper) Archiver(snap *sandbox.Snapshot) (runtime.Archiver, error) {
	d, err := k.snapshots.Archiver(snap.Runtime)
	if err != nil || !snap.Archived() {
		return d, err
	}
	return &elsewhere{d, k, snap}, nil
}

type elsewhere struct {
	runtime.Archiver
	k    *Keeper
	snap *sandbox.Snapshot
}

// ExportDisk writes the disk as the driver's ExportDisk did.
func (e *elsewhere) ExportDisk(ctx context.Context, _ sandbox.ID, w io.Writer) error {
	img, err := e.k.snapshots.Image(e.snap.Image, e.snap.ImageDigest)
	if err != nil {
		return err
	}
	return e.k.export(ctx, ofSnapshot(e.snap), img, w)
}
