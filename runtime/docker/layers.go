// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/disk"
	"sandpit.dev/sandbox"
)

// A snapshot that came from outside does not say of which image it is. It is a file in the server's
// directory until somebody says so: who makes a sandbox of it.

// suffixNew is of files that are not whole yet.
const suffixNew = ".new"

// Import keeps a layer from outside.
func (d *Driver) Import(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64) (runtime.Snapshot, error) {
	if err := checkSnapshotID(id); err != nil {
		return runtime.Snapshot{}, err
	}
	done, err := d.keep(ctx, id)
	if err != nil {
		return runtime.Snapshot{}, err
	}
	defer done()
	var size int64
	f, err := d.spool(func(f *os.File) (err error) {
		size, err = disk.Take(ctx, r, f, maxBytes)
		return err
	})
	if err != nil {
		return runtime.Snapshot{}, err
	}
	defer f.remove()
	if err := f.Sync(); err != nil {
		return runtime.Snapshot{}, layerError(err)
	}
	if err := d.layers.Rename(f.name, string(id)); err != nil {
		return runtime.Snapshot{}, layerError(err)
	}
	return runtime.Snapshot{SizeBytes: size}, d.syncLayers()
}

func (d *Driver) syncLayers() error {
	dir, err := d.layers.Open(".")
	if err != nil {
		return layerError(err)
	}
	defer func() { _ = dir.Close() }()
	if err := dir.Sync(); err != nil {
		return layerError(err)
	}
	return nil
}

// spooled is a file that is removed unless it gets another name.
type spooled struct {
	*os.File
	name string
	in   *os.Root
}

func (s *spooled) remove() {
	_ = s.Close()
	_ = s.in.Remove(s.name) // it has another name, or the next server removes it
}

// spool makes a file of what write writes.
func (d *Driver) spool(write func(*os.File) error) (*spooled, error) {
	name := strings.ToLower(rand.Text()) + suffixNew
	f, err := d.layers.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, layerError(err)
	}
	s := &spooled{f, name, d.layers}
	if err := write(f); err != nil {
		s.remove()
		return nil, layerError(err)
	}
	return s, nil
}

// layerError says what is wrong with the server's own file, where it is not said yet.
func layerError(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.NoSpace(fault.StoreDisk, err, "the server's disk is full, where the docker runtime keeps imported snapshots").WithRemedy("make room in the server's data directory")
	}
	return err
}

func (d *Driver) hasLayer(id sandbox.ID) bool {
	_, err := d.layers.Lstat(string(id))
	return err == nil
}

func (d *Driver) copyLayer(id sandbox.ID, w io.Writer) error {
	f, err := d.layers.Open(string(id))
	if err != nil {
		return layerError(err)
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(w, f)
	return err
}

func (d *Driver) removeLayer(id sandbox.ID) error {
	if err := d.layers.Remove(string(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Internal, err, "the snapshot %s cannot be removed", id)
	}
	return nil
}

func (d *Driver) listLayers() ([]sandbox.ID, error) {
	entries, err := fs.ReadDir(d.layers.FS(), ".")
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the imported snapshots of the docker runtime cannot be listed")
	}
	var out []sandbox.ID
	for _, e := range entries {
		if sandbox.ValidID(e.Name()) {
			out = append(out, sandbox.ID(e.Name()))
		}
	}
	return out, nil
}

// sweepLayers removes files that an earlier server left half made, and those that became images.
func (d *Driver) sweepLayers(ctx context.Context) error {
	entries, err := fs.ReadDir(d.layers.FS(), ".")
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the imported snapshots of the docker runtime cannot be listed")
	}
	for _, e := range entries {
		if sandbox.ValidID(e.Name()) {
			if _, err := d.kept(ctx, sandbox.ID(e.Name())); fault.Is(err, fault.NotFound) {
				continue
			} else if err != nil {
				return err
			}
		}
		if err := d.layers.Remove(e.Name()); err != nil {
			return fault.Wrap(fault.Internal, err, "what is left of an imported snapshot cannot be removed")
		}
	}
	return nil
}
