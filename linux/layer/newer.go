// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// What is where in the superblock of btrfs (struct btrfs_super_block).
const (
	superAt        = 64 << 10
	superSize      = 4 << 10
	superMagic     = "_BHRfS_M"
	superMagicAt   = 0x40
	superIncompat  = 0xbc    // features that a kernel has to know to read the file system
	incompatSquota = 1 << 16 // BTRFS_FEATURE_INCOMPAT_SIMPLE_QUOTA, Linux 6.7
)

// featuresDir lists what the kernel's btrfs knows.
const featuresDir = "/sys/fs/btrfs/features"

// refusedAs says why a store that cannot be mounted needs a newer kernel, or nil where that
// is not the reason. The kernel says so in its log only, and an error that is merely
// an invalid argument makes people repair what is not broken.
func refusedAs(file io.ReaderAt, path, features string) error {
	super := make([]byte, superSize)
	if _, err := file.ReadAt(super, superAt); err != nil || string(super[superMagicAt:][:len(superMagic)]) != superMagic {
		return nil
	}
	if binary.LittleEndian.Uint64(super[superIncompat:])&incompatSquota == 0 {
		return nil
	}
	if _, err := os.Stat(filepath.Join(features, "simple_quota")); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fault.New(fault.Unsupported, "the store %s was made on a newer kernel: it keeps simple quotas, which this one (%s) does not know. "+
		"Nothing is wrong with it, and nothing in it was changed", path, release()).
		WithRemedy("boot Linux 6.7 or later, or use another data directory")
}

func release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "its release is not known"
	}
	return unix.ByteSliceToString(u.Release[:])
}
