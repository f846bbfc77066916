// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// When the host's memory ends, the kernel ends who has most, with so many thousandths of all
// memory on top: commands first, then agents, and the server and all else of the host after them.
// A command lowers its own to its agent's at the least, or, where the server has no
// CAP_SYS_RESOURCE, to the server's as it began: agents are so close to both that such a one is
// ended before them once it has three tenths of the memory.
const (
	agentScore   = 300
	commandScore = 900
)

// commandFiles is how many descriptors a command's process has at most where what sockets hold
// is in no limit of memory, or as many as the server itself if these are fewer.
const commandFiles = 4096

// score sets an agent's, before it has any command.
func score(pid int) error {
	name := "/proc/" + strconv.Itoa(pid) + "/oom_score_adj"
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.Write(fd, strconv.AppendUint(make([]byte, 0, 4), agentScore, 10))
		_ = unix.Close(fd)
	}
	// EACCES: the server's own is higher, and it may lower none.
	if err != nil && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ESRCH) {
		return fault.Wrap(fault.Unavailable, err, "the score of process %d for the out-of-memory killer cannot be set", pid)
	}
	return nil
}
