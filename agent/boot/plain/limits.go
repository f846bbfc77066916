// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"io"
	"os"

	"sandpit.dev/linux/cgroup/counter"
)

// commandScore is the oom_score_adj(5) of commands: the kernel ends them before the agent where the
// container's memory ends.
const commandScore = 500

// oomKills returns what reads how many processes of the container the kernel killed for its memory
// limit; nil where the container does not show it.
func oomKills() func() (int64, error) {
	return reader(counter.OOMKills, "/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
}

// pidsRefusals does the same for forks that its limit of processes refused.
func pidsRefusals() func() (int64, error) {
	return reader(counter.PIDsRefused, "/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events")
}

// reader opens the first of these files that is a counter, in version 2 of cgroups and in version 1:
// a container that sees its own group sees it at the top.
func reader(read func(io.ReaderAt) (uint64, error), paths ...string) func() (int64, error) {
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		if _, err := read(f); err != nil {
			_ = f.Close()
			continue
		}
		return func() (int64, error) {
			n, err := read(f)
			return int64(n), err //nolint:gosec // a count
		}
	}
	return nil
}
