// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net"

	"golang.org/x/sys/unix"
)

// hungUp reports whether the other side has closed a connection.
func hungUp(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		gone = err == nil && n > 0 && p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return gone || err != nil
}
