// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"io"
	"io/fs"
	"strings"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/disk"
	"sandpit.dev/sandbox"
)

var _ runtime.Snapshotter = (*Driver)(nil)

// diskPatience bounds reading a disk, and filling one: both take as long as it is large.
const diskPatience = 20 * time.Minute

// keptDirs returns the directories of a disk that snapshots hold, as archives name them.
func keptDirs() []string {
	dirs := diskDirs()
	for n, dir := range dirs {
		dirs[n] = strings.Trim(dir, "/")
	}
	return dirs
}

// instance returns one that exists, up or down.
func (d *Driver) instance(ctx context.Context, id sandbox.ID) (*Instance, error) {
	i, err := d.Open(ctx, runtime.Handle{ID: id})
	if err != nil {
		return nil, err
	}
	return i.(*Instance), nil //nolint:forcetypeassert // Open returns no other
}

// Snapshot has the agent send the disk, for which all processes stand still. What is kept already is not kept again.
func (d *Driver) Snapshot(ctx context.Context, of, id sandbox.ID) (runtime.Snapshot, error) {
	done, err := d.reserve(id)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	defer done()
	i, err := d.instance(ctx, of)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	end, err := i.begin(ctx)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	defer end()
	f, err := d.spool(ctx, func(w io.Writer) error {
		return i.readDisk(ctx, func(r io.Reader) error {
			_, err := io.Copy(w, r)
			return err
		})
	})
	if err != nil {
		return runtime.Snapshot{}, err
	}
	defer f.remove()
	if err := ctx.Err(); err != nil {
		return runtime.Snapshot{}, err
	}
	size, err := d.publish(f, id)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	return runtime.Snapshot{SizeBytes: size}, nil
}

// Rollback notes what the disk is to hold from the next start on.
func (d *Driver) Rollback(ctx context.Context, of, from sandbox.ID, _ sandbox.Limits) error {
	i, err := d.instance(ctx, of)
	if err != nil {
		return err
	}
	end, err := i.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	switch _, err := i.life(); {
	case err == nil:
		return fault.New(fault.State, "sandbox %s is running", of).WithRemedy("stop it first")
	case !fault.Is(err, fault.State):
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if from != "" {
		if !sandbox.ValidID(string(from)) || !d.hasSnapshot(from) {
			return noSnapshot(from)
		}
		return i.promiseSnapshot(from)
	}
	f, err := d.spool(ctx, func(w io.Writer) error { return tar.NewWriter(w).Close() })
	if err != nil {
		return err
	}
	defer f.remove()
	if err := i.promise(f.name); err != nil || !i.keepsRoot {
		return err
	}
	return i.freshen()
}

// Snapshots lists those of the server's directory.
func (d *Driver) Snapshots(context.Context) ([]sandbox.ID, error) {
	entries, err := fs.ReadDir(d.files.FS(), snapshotsDir)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the snapshots of the kubernetes runtime cannot be listed")
	}
	var out []sandbox.ID
	for _, e := range entries {
		if sandbox.ValidID(e.Name()) {
			out = append(out, sandbox.ID(e.Name()))
		}
	}
	return out, nil
}

// RemoveSnapshot removes the index of a snapshot, and what nothing else holds. A disk that is to be filled from it has another.
func (d *Driver) RemoveSnapshot(_ context.Context, id sandbox.ID) error {
	if !sandbox.ValidID(string(id)) {
		return fault.InvalidField("id", "%q is not a valid snapshot id", sandbox.Clip(string(id), 40))
	}
	if err := d.discard(snapshotFile(id)); err != nil {
		return fault.Wrap(fault.Internal, err, "the snapshot %s cannot be removed", id)
	}
	return nil
}

// Diff reads both disks, and compares them.
func (d *Driver) Diff(ctx context.Context, _ runtime.Image, from, to runtime.Point, limit int) (sandbox.Changes, error) {
	was, err := d.treeOf(ctx, from)
	if err != nil {
		return sandbox.Changes{}, err
	}
	is := was
	if from != to {
		if is, err = d.treeOf(ctx, to); err != nil {
			return sandbox.Changes{}, err
		}
	}
	return disk.Changes(was, is, limit), nil
}

func (d *Driver) treeOf(ctx context.Context, p runtime.Point) (tree *disk.Tree, err error) {
	switch {
	case p.Instance != "":
		i, err := d.instance(ctx, p.Instance)
		if err != nil {
			return nil, err
		}
		end, err := i.begin(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
		err = i.readDisk(ctx, func(r io.Reader) (err error) {
			tree, err = disk.Read(ctx, r)
			return err
		})
		return tree, err
	case p.Snapshot != "":
		a, err := d.openSnapshot(ctx, p.Snapshot)
		if err != nil {
			return nil, err
		}
		defer func() { _ = a.Close() }()
		return disk.Read(ctx, a)
	}
	return newTree(ctx)
}

// newTree returns the tree of a new disk.
func newTree(ctx context.Context) (*disk.Tree, error) {
	var archive bytes.Buffer
	out := tar.NewWriter(&archive)
	for _, dir := range append(keptDirs(), strings.Trim(userHome, "/")) {
		h := &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, Uid: userID, Gid: userID, Format: tar.FormatPAX}
		if "/"+dir == homes {
			h.Uid, h.Gid = 0, 0
		}
		if err := out.WriteHeader(h); err != nil {
			return nil, err
		}
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	return disk.Read(ctx, &archive)
}

// Export writes what a snapshot has beside a disk that is new.
func (d *Driver) Export(ctx context.Context, id sandbox.ID, w io.Writer) error {
	was, err := newTree(ctx)
	if err != nil {
		return err
	}
	is, err := d.treeOf(ctx, runtime.Point{Snapshot: id})
	if id == "" {
		err = noSnapshot(id)
	}
	if err != nil {
		return err
	}
	a, err := d.openSnapshot(ctx, id)
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }()
	out := bufio.NewWriterSize(w, 64<<10)
	if err := disk.Between(was, is).Write(ctx, a, out); err != nil {
		return err
	}
	return out.Flush()
}

// Import keeps of a layer what is on the disk.
func (d *Driver) Import(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64) (runtime.Snapshot, error) {
	done, err := d.reserve(id)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	defer done()
	left := 0
	f, err := d.spool(ctx, func(w io.Writer) (err error) {
		_, left, err = disk.TakeBelow(ctx, r, w, maxBytes, keptDirs())
		return err
	})
	if err != nil {
		return runtime.Snapshot{}, err
	}
	defer f.remove()
	size, err := d.publish(f, id)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	if left > 0 {
		d.log.Warn("an imported snapshot has files that are on no claim; they are left out", "snapshot", id, "entries", left)
	}
	return runtime.Snapshot{SizeBytes: size}, nil
}
