// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// raiseScore gives a command that has just begun the score of commands, so that the kernel
// ends it before the server where memory ends. Before it executed its program it shared the
// server's memory, and its files in /proc were the host's. What it has forked by now, and what it
// lowers its own to, is at the server's score at the least. A command that has ended has none.
func (s *Server) raiseScore(pid int) {
	if s.o.Score == 0 {
		return
	}
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	var buf [12]byte
	_, _ = unix.Write(fd, strconv.AppendUint(buf[:0], uint64(s.o.Score), 10))
	_ = unix.Close(fd)
}
