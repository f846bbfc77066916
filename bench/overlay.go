// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// rootName is where in a bundle's directory the root is.
const rootName = "rootfs"

// mountOverlay mounts a writable layer over root at dir's rootfs, with all of the
// layer in dir. It belongs on a [private] thread.
func mountOverlay(root, dir string) error {
	for _, d := range []string{"upper", "work", rootName} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	options := "lowerdir=" + root + ",upperdir=" + filepath.Join(dir, "upper") + ",workdir=" + filepath.Join(dir, "work")
	if err := unix.Mount("overlay", filepath.Join(dir, rootName), "overlay", 0, options); err != nil {
		return fmt.Errorf("mount the overlay: %w", err)
	}
	return nil
}

// dropOverlay undoes mountOverlay, also one that failed half way.
func dropOverlay(dir string) error {
	_ = unix.Unmount(filepath.Join(dir, rootName), unix.MNT_DETACH) // it may not be mounted
	return os.RemoveAll(dir)
}
