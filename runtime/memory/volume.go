// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var _ runtime.Volumer = (*Driver)(nil)

// CreateVolume makes a directory. The fake holds no limit.
func (d *Driver) CreateVolume(ctx context.Context, id sandbox.ID, limit int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	dir, err := d.host.volume(id)
	if err != nil {
		return err
	}
	if limit != 0 {
		return fault.New(fault.Unsupported, "the memory runtime is a fake: it limits no volume").
			WithRemedy("leave the size out, or use another runtime")
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fault.New(fault.Exists, "there is a volume %s already", id)
		}
		return err
	}
	return nil
}

// RemoveVolume deletes one that nobody mounts.
func (d *Driver) RemoveVolume(ctx context.Context, id sandbox.ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := d.host.volume(id); err != nil {
		return err
	}
	d.host.mu.Lock()
	defer d.host.mu.Unlock()
	if n := d.host.mounts[id]; n > 0 {
		return fault.New(fault.Conflict, "volume %s is mounted %d times", id, n).WithRemedy("stop the sandboxes that mount it")
	}
	return d.host.discard(volumesDir, id)
}

// VolumeUsage counts the bytes of its files.
func (d *Driver) VolumeUsage(ctx context.Context, id sandbox.ID) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	dir, err := d.host.volume(id)
	if err != nil {
		return 0, err
	}
	all, err := scan(dir, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, noVolume(id)
	}
	return size(all), err
}

// Volumes reads the host's directory.
func (d *Driver) Volumes(ctx context.Context) ([]sandbox.ID, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return d.host.ids(volumesDir)
}

// volume returns the directory of one, which may be missing.
func (h *Host) volume(id sandbox.ID) (string, error) {
	if !sandbox.ValidID(string(id)) {
		return "", fault.InvalidField("id", "%q is not a valid volume id", sandbox.Clip(string(id), 40))
	}
	return filepath.Join(h.dir, volumesDir, string(id)), nil
}

// attach counts a mount of a volume, and gives the directory that is mounted: sub
// in the volume, made where it is missing.
func (h *Host) attach(id sandbox.ID, sub string) (string, error) {
	dir, err := h.volume(id)
	if err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", noVolume(id)
		}
		return "", err
	}
	if sub != "" {
		if err := makeDirs(dir, sub); err != nil {
			return "", blockedAs(err, "the directory %s of volume %s cannot be mounted", sub, id)
		}
		dir = filepath.Join(dir, sub)
	}
	h.mounts[id]++
	return dir, nil
}

func (h *Host) detach(id sandbox.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mounts[id]--; h.mounts[id] == 0 {
		delete(h.mounts, id)
	}
}

func noVolume(id sandbox.ID) error {
	return fault.New(fault.NotFound, "there is no volume %s on this host", id)
}
