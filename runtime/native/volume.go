// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/linux/host"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var _ runtime.Volumer = (*Driver)(nil)

// volumesFile is written of an instance while it is up and mounts volumes: which. The
// next server keeps those, before it has found the instance.
const volumesFile = ".volumes"

// CreateVolume makes an empty volume. See [runtime.Volumer].
func (d *Driver) CreateVolume(_ context.Context, id sandbox.ID, limit int64) error {
	if err := checkVolumeID(id); err != nil {
		return err
	}
	if err := d.layers.CreateVolume(string(id), limit); err != nil {
		return err
	}
	d.checkpoint("volume.created")
	return nil
}

// RemoveVolume deletes a volume that no instance mounts. See [runtime.Volumer].
func (d *Driver) RemoveVolume(_ context.Context, id sandbox.ID) error {
	if err := checkVolumeID(id); err != nil {
		return err
	}
	d.volumes.Lock() // against who is about to mount it
	defer d.volumes.Unlock()
	user, err := d.mountedBy(id)
	if err != nil {
		return err
	}
	if user != "" {
		return fault.New(fault.Conflict, "volume %s is mounted by sandbox %s", id, user).WithRemedy("stop the sandbox first")
	}
	if err := d.layers.RemoveVolume(string(id)); err != nil {
		return err
	}
	d.checkpoint("volume.removed")
	return nil
}

// VolumeUsage returns what a volume holds. See [runtime.Volumer].
func (d *Driver) VolumeUsage(_ context.Context, id sandbox.ID) (int64, error) {
	if err := checkVolumeID(id); err != nil {
		return 0, err
	}
	used, _, err := d.layers.VolumeUsage(string(id))
	if fault.Is(err, fault.Unsupported) {
		return -1, nil
	}
	return used, err
}

// Volumes lists what is kept. See [runtime.Volumer].
func (d *Driver) Volumes(context.Context) ([]sandbox.ID, error) {
	names, err := d.layers.Volumes()
	if err != nil {
		return nil, err
	}
	ids := make([]sandbox.ID, len(names))
	for n, name := range names {
		ids[n] = sandbox.ID(name)
	}
	return ids, nil
}

// KeepVolume keeps what a volume holds. See [runtime.Archiver].
func (d *Driver) KeepVolume(ctx context.Context, of, id sandbox.ID) error {
	if err := checkVolumeID(of); err != nil {
		return err
	}
	if err := checkSnapshotID(id); err != nil {
		return err
	}
	defer d.inflight.begin()()
	return d.layers.SnapshotVolume(ctx, string(of), string(id))
}

func checkVolumeID(id sandbox.ID) error {
	if !sandbox.ValidID(string(id)) {
		return fault.InvalidField("id", "%q is not a valid volume id", sandbox.Clip(string(id), 40))
	}
	return nil
}

// mountedBy returns an instance that mounts a volume, or is about to; "" where none
// does. d.volumes is held.
func (d *Driver) mountedBy(volume sandbox.ID) (sandbox.ID, error) {
	files, err := fs.ReadDir(d.instances.FS(), ".")
	if err != nil {
		return "", err
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), volumesFile)
		if !ok {
			continue
		}
		list, err := d.instances.Readlink(f.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // it ended meanwhile
		}
		if err != nil {
			return "", err
		}
		if !slices.Contains(strings.Split(list, " "), string(volume)) {
			continue
		}
		if up, err := d.perhapsUp(sandbox.ID(name)); up || err != nil {
			return sandbox.ID(name), err
		}
	}
	return "", nil
}

// perhapsUp reports whether an instance of which files are left is up, or about to be.
// One that nobody has opened since the server began, and whose process 1 is gone, is not.
func (d *Driver) perhapsUp(id sandbox.ID) (bool, error) {
	d.mu.Lock()
	known := d.known[id] != nil
	d.mu.Unlock()
	if known {
		return true, nil // its files go before it is down
	}
	s, err := host.ReadState(d.instances.Root, string(id))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	pidfd, err := s.Open(d.boot)
	if pidfd != nil {
		_ = pidfd.Close()
	}
	return pidfd != nil, err
}

// noteVolumes puts down which volumes an instance is about to mount. d.volumes is held.
func (i *Instance) noteVolumes(mounts []sandbox.Mount) error {
	ids := make([]string, len(mounts))
	for n, m := range mounts {
		ids[n] = string(m.Volume)
	}
	if err := i.d.instances.Symlink(strings.Join(ids, " "), string(i.id)+volumesFile); err != nil {
		return fault.Wrap(fault.Internal, err, "the volumes of sandbox %s cannot be put down", i.id)
	}
	return nil
}
