// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kept

import (
	"os"

	"golang.org/x/sys/unix"
)

// tries is how often a process that is not there is asked for.
const tries = 100

// Status reads the status of a process that the kernel has reaped. It tells whether
// that is done yet.
//
// The kernel looks for the status first and for the process then, and answers ESRCH where
// neither was there in its turn: that is a process which was reaped in between, about one in
// 2,000 of those that end while somebody waits. Its status is there by then.
func Status(pidfd int) (status unix.WaitStatus, done bool, err error) {
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	for range tries {
		if err = unix.IoctlPidfdInfo(pidfd, &info); err != unix.ESRCH {
			break
		}
	}
	if err != nil {
		return 0, false, os.NewSyscallError("ioctl(PIDFD_GET_INFO)", err)
	}
	return unix.WaitStatus(info.Exit_code), info.Mask&unix.PIDFD_INFO_EXIT != 0, nil
}
