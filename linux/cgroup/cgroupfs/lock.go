// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroupfs

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Each open driver holds a shared lock of its namespace's group in each hierarchy. Who has
// the exclusive lock knows that no server uses the namespace, in whatever container it runs, and
// that none begins to.

// OwnerMark is the attribute of a namespace's group that has its owner. A host that
// refuses it, as a container's may, keeps the groups until somebody removes them.
const OwnerMark = "trusted.sandpit.owner"

// maxOwner is the longest path.
const maxOwner = unix.PathMax

func mark(dir int, owner string) {
	if owner != "" {
		_ = again(func() error { return unix.Fsetxattr(dir, OwnerMark, []byte(owner), 0) })
	}
}

// Owner returns the owner that an open group is marked with, "" where it has none.
func Owner(dir int) string {
	b := make([]byte, maxOwner)
	n, err := unix.Fgetxattr(dir, OwnerMark, b)
	if err != nil {
		return ""
	}
	return string(b[:n])
}

// Lock is a flock of an open group that does not wait.
func Lock(dir, how int) error {
	return again(func() error { return unix.Flock(dir, how|unix.LOCK_NB) })
}

// Who looks whether a namespace is unused has its exclusive lock for so long at most.
const patienceToLock, pauseToLock = 2 * time.Second, 2 * time.Millisecond

// Alone takes the exclusive lock of an open directory, unless another driver has it open.
func Alone(dir int) bool {
	for deadline := time.Now().Add(patienceToLock); ; {
		if Lock(dir, unix.LOCK_EX) == nil {
			return true
		}
		if Lock(dir, unix.LOCK_SH) == nil { // a driver's, or somebody has just finished looking
			return Lock(dir, unix.LOCK_EX) == nil
		}
		if time.Now().After(deadline) {
			return false
		}
		<-time.After(pauseToLock)
	}
}

// share takes the shared lock of the open directory dir, whose path below root is path. It is
// ENOENT if the directory was removed before.
func share(root int, path string, dir int) error {
	for deadline := time.Now().Add(patienceToLock); ; {
		err := Lock(dir, unix.LOCK_SH)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
		<-time.After(pauseToLock) // the holder of the exclusive lock is removing the namespace
	}
	var open, there unix.Stat_t
	if err := unix.Fstat(dir, &open); err != nil {
		return err
	}
	if err := unix.Fstatat(root, path, &there, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if open.Ino != there.Ino {
		return unix.ENOENT
	}
	return nil
}
