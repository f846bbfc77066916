// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// waitProcess blocks until the process behind pidfd is gone, without holding a
// thread: the runtime's poller waits for the descriptor. Where the process is
// our child it is reaped and its status is known. It answers false when pidfd
// was closed under it: then nothing is known of the process.
func waitProcess(pidfd *os.File) (runtime.Exit, bool) {
	gone := runtime.Exit{Cause: sandbox.CauseHost, Detail: "process 1 of the sandbox ended while no server watched it"}
	rc, err := pidfd.SyscallConn()
	if err != nil {
		return gone, false
	}
	exit := gone
	err = rc.Read(func(fd uintptr) bool {
		var si unix.Siginfo
		err := unix.Waitid(unix.P_PIDFD, int(fd), &si, unix.WEXITED|unix.WNOHANG|unix.WALL, nil) // also of one that never came to its program
		switch err {
		case nil:
			if si.Signo == 0 {
				return false // still there
			}
			exit = exitOf(&si)
			return true
		case unix.EINTR:
			return false
		default: // ECHILD: not ours to reap, an earlier server started it
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return err == nil && n > 0
		}
	})
	return exit, err == nil
}

// exitOf tells why process 1 is gone, from the kernel's siginfo of a child.
func exitOf(si *unix.Siginfo) runtime.Exit {
	status := childStatus(si)
	const exited = 1 // CLD_EXITED
	if si.Code == exited {
		return runtime.Exit{Cause: sandbox.CauseHost, Detail: fmt.Sprintf("process 1 of the sandbox exited with status %d", status)}
	}
	return runtime.Exit{Cause: sandbox.CauseKilled, Detail: fmt.Sprintf("process 1 of the sandbox was killed by signal %d (%s)", status, unix.SignalName(unix.Signal(status)))}
}

// childStatus reads si_status, which x/sys does not name: struct siginfo has
// si_signo, si_errno, si_code, padding, then of a child si_pid, si_uid,
// si_status, each four bytes on every 64-bit architecture
// (include/uapi/asm-generic/siginfo.h).
func childStatus(si *unix.Siginfo) int32 {
	return *(*int32)(unsafe.Add(unsafe.Pointer(si), 24))
}
