// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/mount"
	"sandpit.dev/linux/spawn"
	"sandpit.dev/runtime/native/furnish"
)

// bareMounts makes a mount namespace with nothing in it but an empty root and a /proc in
// which nobody is. A sandbox begins with a copy of it: so it never has a mount of the host's,
// and there is next to nothing to copy. Its root is attached over the empty one, which stays
// below for its life, out of the reach of all but the agent. Without a /proc the kernel
// gives the sandbox none of its own: it must not see more than whoever made it could.
func bareMounts(m spawn.Method) (*os.File, error) {
	var ns *os.File
	made := make(chan error)
	mount.OnThread(func() {
		own, err := os.Open("/proc/thread-self/ns") // while there is one that knows the thread
		if err == nil {
			if err = leaveMounts(m); err == nil {
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
func leaveMounts(m spawn.Method) error {
	proc, err := furnish.DeadProc(m)
	if err != nil {
		return err
	}
	defer func() { _ = proc.Close() }()
	if err := mount.LeaveHost("proc"); err != nil {
		return err
	}
	if err := unix.MoveMount(int(proc.Fd()), "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach /proc: %w", err)
	}
	return nil
}
