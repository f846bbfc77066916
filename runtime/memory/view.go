// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sandpit.dev/fault"
	"sandpit.dev/linux/merged"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var _ runtime.Viewer = (*Driver)(nil)

// imageDir has the files of the image, which are directories.
const imageDir = "image"

// View opens the directory that stands for the disk.
func (d *Driver) View(_ context.Context, _ runtime.Image, at runtime.Point) (runtime.View, error) {
	h := d.host
	h.snapshots.Lock()
	defer h.snapshots.Unlock()
	var dir string
	switch {
	case at.Snapshot != "":
		if !sandbox.ValidID(string(at.Snapshot)) {
			return nil, fault.InvalidField("id", "%q is not a valid snapshot id", sandbox.Clip(string(at.Snapshot), 40))
		}
		dir = filepath.Join(h.dir, snapshotsDir, string(at.Snapshot))
	case at.Instance != "":
		m, err := h.find(at.Instance)
		if err != nil {
			return nil, err
		}
		dir = m.disk()
	default:
		dir = filepath.Join(h.dir, imageDir)
		if err := copyTree(image(), dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "there is no snapshot %s on this host", at.Snapshot)
	}
	if err != nil {
		return nil, err
	}
	return merged.New(f, nil, at.Instance == ""), nil
}
