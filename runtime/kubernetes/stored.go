// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"sandpit.dev/blob"
	"sandpit.dev/blob/chunks"
	"sandpit.dev/blob/dir"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// chunksDir is the directory for chunks where no other place is configured.
const chunksDir = "chunks"

// purpose is what the place of chunks is for, of a runtime whose section of the configuration has the name.
func purpose(section string) blob.Purpose {
	return blob.Purpose{Kept: "snapshots of the kubernetes runtime", Section: section + ".snapshots"}
}

// openChunks opens the place of chunks, and counts them. It returns the files that say that there may be some that nothing has.
func (d *Driver) openChunks() (left []string, err error) {
	store := d.o.Snapshots
	if store == nil {
		store = dir.Named(filepath.Join(d.o.Dir, chunksDir), "directory kubernetes/"+chunksDir+" of the data directory").For(purpose(Name))
	}
	if d.chunks, err = chunks.New(store); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the place of snapshots cannot be opened")
	}
	damaged := false
	hold := func(name string) error {
		x, err := d.index(name)
		if _, parsed := errors.AsType[*fault.Error](err); parsed {
			damaged = true
			d.log.Error("an index of what a snapshot holds is damaged", "file", name, "error", err)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(fault.Internal, err, "an index of what a snapshot holds cannot be read")
		}
		d.chunks.Hold(x)
		return nil
	}
	snapshots, err := fs.ReadDir(d.files.FS(), snapshotsDir)
	for _, e := range snapshots {
		switch {
		case err != nil:
		case strings.HasSuffix(e.Name(), suffixNew) || strings.HasSuffix(e.Name(), suffixGone):
			left = append(left, snapshotsDir+"/"+e.Name())
		case sandbox.ValidID(e.Name()):
			err = hold(snapshotFile(sandbox.ID(e.Name())))
		}
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the snapshots of the kubernetes runtime cannot be listed")
	}
	instances, err := fs.ReadDir(d.instances.FS(), ".")
	for _, e := range instances {
		if err == nil && sandbox.ValidID(e.Name()) {
			err = hold(pendingFile(sandbox.ID(e.Name())))
		}
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the sandboxes of the kubernetes runtime cannot be listed")
	}
	if damaged { // it may be mended
		left = nil
	}
	return left, nil
}

// sweep removes chunks that nothing has, if there may be some.
func (d *Driver) sweep(left []string) {
	defer close(d.swept)
	if len(left) == 0 {
		return
	}
	err := d.chunks.Sweep(d.running)
	for _, name := range left {
		if err == nil {
			err = d.files.Remove(name)
		}
	}
	if err != nil && d.running.Err() == nil {
		d.log.Warn("what is left of snapshots cannot be removed; the next start tries again", "store", d.chunks.Place(), "error", err)
	}
}

// index reads an index. A file of an earlier format, which is an archive itself, has no chunks.
func (d *Driver) index(name string) (chunks.Index, error) {
	f, err := d.files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err == nil && string(head) == zstdMagic {
		return nil, nil
	}
	b, err := d.files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return chunks.Parse(b)
}

// zstdMagic is what an archive begins with that is compressed as a whole, as servers before had them.
const zstdMagic = "\x28\xb5\x2f\xfd"

// archive is one that is read. What it is made of is there until it is closed.
type archive struct {
	io.Reader
	close func()
}

func (a *archive) Close() error {
	a.close()
	return nil
}

// openArchive opens what an index says.
func (d *Driver) openArchive(ctx context.Context, name string) (*archive, error) {
	own := newName(suffixGone)
	if err := d.files.Link(name, own); err != nil {
		return nil, err
	}
	x, err := d.index(own)
	if err == nil {
		err = d.chunks.Share(ctx, x)
	}
	if err != nil {
		_ = d.files.Remove(own)
		return nil, err
	}
	if len(x) > 0 {
		r := d.chunks.Open(ctx, x)
		return &archive{r, func() {
			_ = r.Close()
			d.drop(x, own)
		}}, nil
	}
	f, err := d.files.Open(own)
	_ = d.files.Remove(own)
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &archive{z, func() {
		z.Close()
		_ = f.Close()
	}}, nil
}

// openSnapshot opens the archive of a snapshot.
func (d *Driver) openSnapshot(ctx context.Context, id sandbox.ID) (*archive, error) {
	if !sandbox.ValidID(string(id)) {
		return nil, noSnapshot(id)
	}
	a, err := d.openArchive(ctx, snapshotFile(id))
	if errors.Is(err, fs.ErrNotExist) || fault.Is(err, fault.NotFound) {
		return nil, noSnapshot(id)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the snapshot %s cannot be read", id)
	}
	return a, nil
}
