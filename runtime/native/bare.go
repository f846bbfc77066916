// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/runtime/native/furnish"
	"sandpit.dev/runtime/native/mount"
)

// bareMounts makes a mount namespace with nothing in it but an empty root and a /proc in
// which nobody is. A sandbox begins with a copy of it: so it never has a mount of the host's,
// and there is next to nothing to copy. Its root is attached over the empty one, which stays
// below for its life, out of the reach of all but the agent. Without a /proc the kernel
// gives the sandbox none of its own: it must not see more than whoever made it could.
func bareMounts() (*os.File, error) {
	var ns *os.File
	made := make(chan error)
	onThread(func() {
		own, err := os.Open("/proc/thread-self/ns") // while there is one that knows the thread
		if err == nil {
			if err = leaveMounts(); err == nil {
				var fd int
				fd, err = unix.Openat(int(own.Fd()), "mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
				ns = os.NewFile(uintptr(fd), "mnt")
			}
			_ = own.Close()
		}
		made <- err
	})
	if err := <-made; err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "no mount namespace can be made").
			WithRemedy("run `sandpit doctor` on the host")
	}
	return ns, nil
}

// leaveMounts takes the calling thread out of the host's mounts.
func leaveMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	const quiet = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	empty, err := mount.New("tmpfs", quiet, mount.Param{Key: "mode", Value: "0555"}, mount.Param{Key: "size", Value: "4k"})
	if err != nil {
		return err
	}
	defer func() { _ = empty.Close() }()
	proc, err := furnish.DeadProc()
	if err != nil {
		return err
	}
	defer func() { _ = proc.Close() }()
	if err := unix.Mkdirat(int(empty.Fd()), "proc", 0o555); err != nil {
		return fmt.Errorf("make /proc: %w", err)
	}
	if err := mount.SetAttr(empty, unix.MOUNT_ATTR_RDONLY); err != nil {
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
	if err := unix.MoveMount(int(proc.Fd()), "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach /proc: %w", err)
	}
	return nil
}

// onThread runs fn on a thread of its own, which ends with it. It is never the
// process's first: that one shows in /proc/self, and cannot end.
func onThread(fn func()) {
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
