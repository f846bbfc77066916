// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup/cgroupfs"
)

// Gauges are files that tell what the commands of a sandbox use and may use, read-only; nil for
// what this host does not count. Their format is that of either version of cgroups.
type Gauges struct {
	Memory, MemoryLimit, MemoryStat *os.File
	CPU                             *os.File // the limit: µs in each 100 ms
	Tasks                           *os.File // processes and threads
}

// Gauges opens them; after Activate. The caller closes them, after an error too.
func (g *Group) Gauges() (out Gauges, err error) {
	for _, x := range []struct {
		to          **os.File
		f           Feature
		file, older string
	}{
		{&out.Memory, Memory, "memory.current", "memory.usage_in_bytes"},
		{&out.MemoryLimit, Memory, "memory.max", "memory.limit_in_bytes"},
		{&out.MemoryStat, Memory, "memory.stat", "memory.stat"},
		{&out.CPU, CPU, "cpu.max", "cpu.cfs_quota_us"},
		{&out.Tasks, PIDs, "pids.current", "pids.current"},
	} {
		switch g.driver.info.Version[x.f] {
		case 2:
			*x.to, err = cgroupfs.Open(g.driver.tree.dir, g.commands()+"/"+x.file, unix.O_RDONLY)
		case 1:
			*x.to, err = g.driver.v1.Open(g.id, string(x.f), x.older)
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}
