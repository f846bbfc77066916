// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package interrupt

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// outputBroken reports whether this program's output or errors have no reader any more.
func outputBroken() bool {
	fds := []unix.PollFd{{Fd: 1, Events: unix.POLLOUT}, {Fd: 2, Events: unix.POLLOUT}}
	if _, err := unix.Poll(fds, 0); err != nil {
		return false
	}
	return (fds[0].Revents|fds[1].Revents)&(unix.POLLERR|unix.POLLHUP) != 0
}

// PipeBroken reports whether a write failed because the pipe has no reader any more.
func PipeBroken(err error) bool { return errors.Is(err, syscall.EPIPE) }
