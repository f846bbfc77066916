// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"io"

	"sandpit.dev/sandbox"
)

// Snapshotter is implemented by drivers that can keep the disks of instances. A snapshot belongs
// to the driver, not to the instance that it was taken of, and outlives it. Its cost does not
// grow with the disk, unless Capabilities has a reason for CheapSnapshots.
type Snapshotter interface {
	// Snapshot keeps the disk of an instance, up, paused or down, as id. If it is up, its
	// processes are frozen for an instant, and the snapshot is of that instant: no write in it is
	// half done. It is on the disk when Snapshot returns. All or nothing; an id that exists is
	// fault.Exists, a missing instance fault.NotFound.
	Snapshot(ctx context.Context, of, id sandbox.ID) (Snapshot, error)
	// Rollback replaces the disk of an instance by a copy of the snapshot's, or by an empty one
	// if from is zero. The instance must be down, else it is fault.State. All or nothing: a crash
	// leaves one complete disk or the other.
	Rollback(ctx context.Context, of, from sandbox.ID, l sandbox.Limits) error
	// Snapshots lists all snapshots that this driver keeps, including those without a record.
	Snapshots(ctx context.Context) ([]sandbox.ID, error)
	// RemoveSnapshot deletes a snapshot. A missing one is not an error. What was made from it
	// stays.
	RemoveSnapshot(ctx context.Context, id sandbox.ID) error
	// Diff returns what changed between two points of instances of the image, sorted by path
	// (absolute, inside), at most limit entries and the count of all.
	Diff(ctx context.Context, image Image, from, to Point, limit int) (sandbox.Changes, error)
	// Export writes a snapshot's disk as a tar archive in the form of an OCI image
	// layer: what it changed of its image, with whiteouts for what it deleted.
	Export(ctx context.Context, id sandbox.ID, w io.Writer) error
	// Import makes the snapshot id from such an archive. The archive is hostile: nothing in it
	// leads anywhere else, and at most maxBytes are kept of it. All or nothing; another format is
	// fault.Invalid.
	Import(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64) (Snapshot, error)
}

// Archiver is implemented by drivers whose disks a backup can hold.
type Archiver interface {
	// KeepVolume keeps the current content of a volume as the snapshot id, which works only for
	// ExportDisk and RemoveSnapshot. All or nothing; a missing volume is fault.NotFound.
	KeepVolume(ctx context.Context, of, id sandbox.ID) error
	// ExportDisk writes the disk of a snapshot, or what KeepVolume kept, as an archive for the
	// driver itself. Its length is that of the content, however large sparse files seem.
	ExportDisk(ctx context.Context, id sandbox.ID, w io.Writer) error
}

// DiskImporter is implemented by drivers that read back what their ExportDisk wrote, so that a disk can
// be kept elsewhere for a while.
type DiskImporter interface {
	// ExportDisk is that of [Archiver].
	ExportDisk(ctx context.Context, id sandbox.ID, w io.Writer) error
	// ImportDisk makes the snapshot id of an archive of ExportDisk, as Import does of one of Export.
	ImportDisk(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64) (Snapshot, error)
}

// Restorer is implemented by instances whose disk can be replaced while they are up, in less time
// than Stop, Rollback and Start take together.
type Restorer interface {
	// Restore kills every process of the instance, which is up or paused, replaces its disk as
	// Rollback does, by a copy of the snapshot from or an empty one, and starts it as Start does,
	// with spec. An instance that is down is fault.State, and a missing snapshot fault.NotFound;
	// then nothing was done. After any other error the instance is down or about to be, and has
	// one complete disk or the other. Callers in Wait see the end of the earlier processes.
	Restore(ctx context.Context, spec Spec, from sandbox.ID) error
}

// Forker is implemented by drivers that can make an instance with a copy of another's disk, in
// less time than Snapshot, Create from that and RemoveSnapshot take together.
type Forker interface {
	// Fork makes an instance as Create does, all or nothing, whose disk is a copy of the disk
	// that the instance of has now, up, paused or down, as Snapshot would keep it. It ignores
	// spec's From. It calls copied once, when it no longer depends on that instance, or when it
	// failed before that. A missing instance of is fault.NotFound.
	Fork(ctx context.Context, of sandbox.ID, spec Spec, copied func()) (Instance, error)
}

// Viewer is implemented by drivers that can show the files of a disk without an instance that runs.
type Viewer interface {
	// View opens the files of a disk at a point, of instances of the image. What the point names is there until the caller
	// closes the view, but for an instance, which may change, be rolled back or go away under it.
	View(ctx context.Context, image Image, at Point) (View, error)
}

// View is the files of a disk, to be read. Paths and names are bytes, absolute inside; ".." and links lead nowhere but within
// the disk. What is in it is hostile: no device or fifo is opened, and every call takes bounded memory. Nobody's rights
// matter. It is safe for concurrent use.
type View interface {
	// Stat tells what is at a path; a link at its end is not followed.
	Stat(ctx context.Context, path string) (sandbox.FileInfo, error)
	// List returns what is in a directory, in the order of the names: at most limit entries after a name, and whether
	// there are more.
	List(ctx context.Context, path, after string, limit int) (dir sandbox.FileInfo, entries []sandbox.FileInfo, more bool, err error)
	// Open opens a regular file. Where the disk does not change any more the file has a version. A directory is
	// fault.Invalid, and so is all else that has no content.
	Open(ctx context.Context, path string) (sandbox.FileInfo, io.ReadSeekCloser, error)
	Close() error
}

// Point names a disk at a point in time: a snapshot's, an instance's current one, or with neither
// the image's, without changes.
type Point struct {
	Snapshot sandbox.ID
	Instance sandbox.ID
}

// Snapshot describes what was kept.
type Snapshot struct {
	SizeBytes int64 // what the disk holds beside its image; -1 where the host does not count it
}

// Volumer is implemented by drivers that can keep volumes and mount them (Spec.Mounts).
type Volumer interface {
	// CreateVolume makes an empty volume, which belongs to the sandbox's user inside. limit is in
	// bytes; zero: none. An id that exists is fault.Exists; a limit that the host cannot enforce
	// is fault.Unsupported, but where it is the size that somebody else makes it of, who may enforce it.
	CreateVolume(ctx context.Context, id sandbox.ID, limit int64) error
	// RemoveVolume deletes a volume and its content, once no instance mounts it. A missing one is
	// not an error.
	RemoveVolume(ctx context.Context, id sandbox.ID) error
	// VolumeUsage returns the bytes that a volume holds; -1 if the host does not count them.
	VolumeUsage(ctx context.Context, id sandbox.ID) (int64, error)
	// Volumes lists all volumes that this driver keeps.
	Volumes(ctx context.Context) ([]sandbox.ID, error)
}

// Persister is implemented by drivers whose disks outlive a crash of the host.
type Persister interface {
	// Unrecorded reports whether the instance, the snapshot or the volume was made so shortly
	// before a crash of the host that its record may not have been on the disk, or is an instance
	// that an earlier version made ahead of a request. It is asked about what has no record.
	Unrecorded(sandbox.ID) (bool, error)
}
