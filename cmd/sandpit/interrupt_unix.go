// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
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

// pipeBroken reports whether a write failed because the pipe has no reader any more.
func pipeBroken(err error) bool { return errors.Is(err, syscall.EPIPE) }

// resized returns a channel that receives when our terminal may have another size.
func resized() (_ <-chan os.Signal, stop func()) {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGWINCH)
	return got, func() { signal.Stop(got) }
}
