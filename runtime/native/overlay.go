// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/runtime/native/mount"
)

// overlay mounts, detached, the layer over the image, both seen through the
// user namespace's map: on disk all ids stay canonical, and root is 0.
//
// It is not volatile: an fsync inside is an fsync. index and nfs_export make
// file handles of the overlay decodable, which tracking of changes needs. It keeps no
// times of access: a layer on btrfs has none anyway, and to look at each read whether
// one is to be written takes a third of opening and reading a small file.
//
// The kernel lets go of a sandbox's mounts some time after its last process, and
// refuses the layer until then; nothing tells when. So a busy layer is tried
// again, until ctx is done.
func overlay(ctx context.Context, image, upper, work *os.File, base uint32) (m *os.File, err error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		m, err = mountOverlay(image, upper, work, base)
		if !errors.Is(err, unix.EBUSY) {
			return m, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}

// mountOverlay mounts with the file-system ids of the sandbox's root: overlay makes its
// work directory with the ids of the thread that mounts it, and they must exist in the
// map, or it mounts read-only and tells nobody.
func mountOverlay(image, upper, work *os.File, base uint32) (*os.File, error) {
	var m *os.File
	var err error
	if failed := withFileIDs(base, base, func() {
		m, err = mount.New("overlay", unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOATIME,
			mount.Param{Key: "lowerdir+", File: image},
			mount.Param{Key: "upperdir", File: upper},
			mount.Param{Key: "workdir", File: work},
			mount.Param{Key: "index", Value: "on"},
			mount.Param{Key: "nfs_export", Value: "on"},
			// Whatever the host's default is: a layer says by itself what is in it, so that it
			// can be compared and exported.
			mount.Param{Key: "redirect_dir", Value: "nofollow"})
	}); failed != nil {
		return nil, failed
	}
	return m, err
}

// withFileIDs runs fn with other file-system ids and all capabilities.
func withFileIDs(uid, gid uint32, fn func()) error {
	runtime.LockOSThread() // stays locked where its ids are not as before: the thread ends then
	// Setting the ids must not take the capabilities away.
	const noSetuidFixup = 1 << 2 // SECBIT_NO_SETUID_FIXUP
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noSetuidFixup, 0, 0, 0); err != nil {
		return fmt.Errorf("keep capabilities: %w", err)
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, uintptr(gid), 0, 0)
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uid), 0, 0)
	fn()
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, 0, 0, 0)
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, 0, 0, 0)
	if unix.Prctl(unix.PR_SET_SECUREBITS, 0, 0, 0, 0) == nil {
		runtime.UnlockOSThread()
	}
	return nil
}
