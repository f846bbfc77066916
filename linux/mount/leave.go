// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// LeaveHost takes the calling thread, which must be locked and end with its goroutine, out
// of the host's mounts, into a namespace with nothing in it but a read-only root that has
// these empty directories.
func LeaveHost(dirs ...string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	const quiet = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	empty, err := New("tmpfs", quiet, Param{Key: "mode", Value: "0555"}, Param{Key: "size", Value: "4k"})
	if err != nil {
		return err
	}
	defer func() { _ = empty.Close() }()
	for _, name := range dirs {
		if err := unix.Mkdirat(int(empty.Fd()), name, 0o555); err != nil {
			return fmt.Errorf("make /%s: %w", name, err)
		}
	}
	if err := SetAttr(empty, unix.MOUNT_ATTR_RDONLY); err != nil {
		return err
	}
	if err := unix.MoveMount(int(empty.Fd()), "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach an empty root: %w", err)
	}
	if err := unix.Fchdir(int(empty.Fd())); err != nil {
		return fmt.Errorf("enter an empty root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the host's mounts: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("enter an empty root: %w", err)
	}
	return nil
}

// OnThread runs fn on a thread of its own, which ends with it. It is never the
// process's first: that one shows in /proc/self, and cannot end.
func OnThread(fn func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			fn() // and never unlocked
			return
		}
		placed := make(chan struct{})
		go func() {
			runtime.LockOSThread() // not to the first thread: that is taken until we are placed
			close(placed)
			fn()
		}()
		<-placed
		runtime.UnlockOSThread()
	}()
}
