// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"io"

	"sandpit.dev/sandbox"
)

// Snapshotter is what drivers are that can keep the disks of instances. A
// snapshot belongs to the driver, not to the instance that it was taken of, and
// outlives it. What it costs does not grow with the disk where Capabilities has no
// reason against it (CheapSnapshots).
type Snapshotter interface {
	// Snapshot keeps the disk of an instance, up, paused or down, as id. Where it is up,
	// its processes stand still for an instant, and the snapshot is of that
	// instant: nothing in it is half of a write. It is on the disk when Snapshot
	// returns. All or nothing; an id that exists is fault.Exists, an instance
	// that is not there fault.NotFound.
	Snapshot(ctx context.Context, of, id sandbox.ID) (Snapshot, error)
	// Rollback exchanges the disk of an instance for a copy of the snapshot's, or
	// for an empty one where from is zero. The instance must be down, else it is
	// fault.State. All or nothing: a crash leaves one disk or the other, whole.
	Rollback(ctx context.Context, of, from sandbox.ID, l sandbox.Limits) error
	// Snapshots lists all that this driver keeps, also those that no record
	// mentions.
	Snapshots(ctx context.Context) ([]sandbox.ID, error)
	// RemoveSnapshot deletes one. One that is not there is fine. What was made
	// from it stays.
	RemoveSnapshot(ctx context.Context, id sandbox.ID) error
	// Diff returns what changed on the way from one point to the other of instances of the image, sorted by path (absolute,
	// inside), at most limit entries and the count of all.
	Diff(ctx context.Context, image Image, from, to Point, limit int) (sandbox.Changes, error)
	// Export writes a snapshot's disk as a tar archive in the form of an OCI image
	// layer: what it changed of its image, with whiteouts for what it deleted.
	Export(ctx context.Context, id sandbox.ID, w io.Writer) error
	// Import makes the snapshot id from such an archive. The archive is hostile:
	// nothing in it leads anywhere else, and at most maxBytes are kept of it. All
	// or nothing; one that is not of this form is fault.Invalid.
	Import(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64) (Snapshot, error)
}

// Archiver is what drivers are whose disks a backup can hold.
type Archiver interface {
	// KeepVolume keeps what a volume holds now as the snapshot id, which is only good for
	// ExportDisk and RemoveSnapshot. All or nothing; a volume that is not there is
	// fault.NotFound.
	KeepVolume(ctx context.Context, of, id sandbox.ID) error
	// ExportDisk writes the disk of a snapshot, or what KeepVolume kept, as an archive for
	// the driver itself: as long as what the disk holds, however large its files seem.
	ExportDisk(ctx context.Context, id sandbox.ID, w io.Writer) error
}

// Restorer is what instances are that can have their disk exchanged while they are up,
// in less time than Stop, Rollback and Start take together.
type Restorer interface {
	// Restore kills every process of the instance, which is up or paused, exchanges its
	// disk as Rollback does, for a copy of the snapshot from or an empty one, and
	// starts it as Start does, with spec. On one that is down it is fault.State,
	// and a snapshot that is not there is fault.NotFound; then nothing was done. After
	// any other error it is down or about to be, and has one disk or the other,
	// whole. Who waits in Wait sees the end of the life before.
	Restore(ctx context.Context, spec Spec, from sandbox.ID) error
}

// Forker is what drivers are that can make an instance with the disk of another, in less
// time than Snapshot, Create from that and RemoveSnapshot take together.
type Forker interface {
	// Fork makes an instance as Create does, all or nothing, whose disk is that of the
	// instance of, up, paused or down, as Snapshot would keep it now; From of spec does not
	// matter. It calls copied, once, when what becomes of that instance is of no more
	// matter to it, or it failed before. An instance of that is not there is fault.NotFound.
	Fork(ctx context.Context, of sandbox.ID, spec Spec, copied func()) (Instance, error)
}

// Point names a disk at a point in time: a snapshot's, or an instance's as it is
// now, or with neither the image's, on which nothing was changed.
type Point struct {
	Snapshot sandbox.ID
	Instance sandbox.ID
}

// Snapshot says what was kept.
type Snapshot struct {
	SizeBytes int64 // what the disk holds beside its image; -1 where the host does not count it
}

// Volumer is what drivers are that can keep volumes and mount them (Spec.Mounts).
type Volumer interface {
	// CreateVolume makes an empty volume, which belongs to the sandbox's user
	// inside. limit is in bytes; zero: none. An id that exists is fault.Exists; a
	// limit where the host cannot hold it is fault.Unsupported.
	CreateVolume(ctx context.Context, id sandbox.ID, limit int64) error
	// RemoveVolume deletes one with all that is in it, once no instance mounts
	// it. One that is not there is fine.
	RemoveVolume(ctx context.Context, id sandbox.ID) error
	// VolumeUsage returns what a volume holds in bytes; -1 where the host does not
	// count it.
	VolumeUsage(ctx context.Context, id sandbox.ID) (int64, error)
	// Volumes lists all that this driver keeps.
	Volumes(ctx context.Context) ([]sandbox.ID, error)
}

// Persister is what drivers are whose disks outlive a crash of the host.
type Persister interface {
	// Unrecorded reports whether the instance, the snapshot or the volume was made so late before
	// a crash of the host that its record may not have been on the disk, or is an instance that
	// an earlier version made before anybody asked. Ask of what no record mentions.
	Unrecorded(sandbox.ID) (bool, error)
}
