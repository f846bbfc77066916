// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"io"
	"log/slog"
	"os"

	"sandpit.dev/fault"
	"sandpit.dev/linux/layer"
	"sandpit.dev/linux/mount"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// disks is the store of a driver's directory without the driver: for disks that come out of a
// backup. Nothing of a sandbox runs.
type disks struct {
	layers *layer.Store
	yard   *mount.Namespace
}

// OpenDisks opens or makes the store that a driver of dir would open or make, and gives it an
// installation's id. It has one owner at a time, as the driver has.
func (k *Kind) OpenDisks(ctx context.Context, dir, id string, log *slog.Logger) (runtime.Disks, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the directory %s cannot be made", dir)
	}
	d := &disks{}
	o := layer.Options{Dir: layersDir(dir), Kind: layer.Kind(k.Layers), Identity: layer.Identity{ID: id}, Logger: log}
	need, err := mount.NeedsNamespace()
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, err, "the host cannot mount a tmpfs")
	}
	if need {
		if d.yard, err = mount.NewNamespace(); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "no mount namespace can be made").WithRemedy("run as root")
		}
		o.Attach, o.Detach = d.yard.Keep, d.yard.Release
	}
	if d.layers, err = layer.Open(ctx, o); err != nil {
		if d.yard != nil {
			_ = d.yard.Close()
		}
		return nil, err
	}
	return d, nil
}

// ImportSandbox makes the disk of a sandbox of an archive of [Driver.ExportDisk]. The archive is
// hostile: nothing in it leads anywhere else, and at most maxBytes are kept of it. diskMB is the
// disk's limit from then on; zero: none. All or nothing.
func (d *disks) ImportSandbox(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64, diskMB int) error {
	return d.layers.ImportLayer(ctx, string(id), r, maxBytes, int64(diskMB)<<20)
}

// ImportSnapshot makes a snapshot; see [runtime.Disks].
func (d *disks) ImportSnapshot(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64) error {
	_, err := d.layers.ImportSnapshot(ctx, string(id), r, maxBytes)
	return err
}

// ImportVolume makes a volume; see [runtime.Disks].
func (d *disks) ImportVolume(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64, sizeMB int) error {
	return d.layers.ImportVolume(ctx, string(id), r, maxBytes, int64(sizeMB)<<20)
}

// Close brings all to the disk and closes the store.
func (d *disks) Close(ctx context.Context) error {
	err := d.layers.Sync(ctx)
	if cerr := d.layers.Close(); err == nil {
		err = cerr
	}
	if d.yard != nil {
		if cerr := d.yard.Close(); err == nil {
			err = cerr
		}
	}
	return err
}
