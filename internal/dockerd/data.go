// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/programs"
)

// layersBy is the Engine's driver of layers for its file system.
func layersBy(dataFS string) string {
	if dataFS == "btrfs" {
		return "btrfs"
	}
	return "overlay2"
}

// makeData makes the file system of an Engine's data in a file, unless an earlier Engine left it there.
func makeData(ctx context.Context, o Options) (err error) {
	packages := map[string]string{"btrfs": "btrfs-progs", "xfs": "xfsprogs"}
	pkg := packages[o.DataFS]
	if pkg == "" {
		return fmt.Errorf("an Engine's data on %q: btrfs and xfs are known", o.DataFS)
	}
	path := dataFile(o)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = errors.Join(f.Truncate(o.DataBytes), f.Close())
	if err == nil {
		err = mkfs(ctx, o, "mkfs."+o.DataFS, pkg)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func mkfs(ctx context.Context, o Options, program, pkg string) error {
	k, err := o.Programs.Find(ctx, program, programs.DebianPackage(pkg))
	if err != nil {
		return err
	}
	return programs.Said(k.Command(ctx, program, "-q", dataFile(o)))
}

func dataFile(o Options) string { return filepath.Join(o.Dir, "data."+o.DataFS) }

// mountData mounts what holds an Engine's data, if that is a file system of its own, in the thread's namespace. A loop device goes with that.
func mountData(ctx context.Context, o Options) error {
	if o.DataBytes == 0 {
		return nil
	}
	dir := filepath.Join(o.Dir, "data")
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	if o.DataFS == "" {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("mode=711,size=%d", o.DataBytes)); err != nil {
			return fmt.Errorf("a file system for the Engine's data: %w", err)
		}
		return nil
	}
	options := "loop"
	if o.DataOptions != "" {
		options += "," + o.DataOptions
	}
	return programs.Said(exec.CommandContext(ctx, "mount", "-t", o.DataFS, "-o", options, dataFile(o), dir))
}
