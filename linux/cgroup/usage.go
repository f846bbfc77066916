// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/linux/cgroup/cgroupfs"
)

// Usage is what the commands of a sandbox use.
type Usage struct {
	CPU         time.Duration // that they got of processors, all together; those that ended too
	MemoryBytes int64         // now; page cache included
	MemoryPeak  int64         // the most of that; negative where this kernel does not keep it
	PIDs        int           // processes and threads; on v1 with up to v1.SpawnerThreads of the agent's
}

// Usage reads it; after Activate. What is not counted on this host is zero. CPU and MemoryPeak are read by [Group.Totals] alone.
func (g *Group) Usage() (Usage, error) {
	memory, pids, err := g.driver.v1.Usage(g.id)
	for _, x := range []struct {
		f    Feature
		file string
		to   *int64
	}{{Memory, "memory.current", &memory}, {PIDs, "pids.current", &pids}} {
		if err == nil && g.driver.info.Version[x.f] == 2 {
			*x.to, err = g.driver.tree.number(g.commands() + "/" + x.file)
		}
	}
	if err != nil {
		return Usage{}, fmt.Errorf("cgroup: %w", g.gone(err))
	}
	return Usage{MemoryBytes: memory, PIDs: int(pids)}, nil
}

// Totals is Usage with what has been counted since Activate, too. Processor time is counted by
// cgroup2, which needs no controller for that.
func (g *Group) Totals() (Usage, error) {
	u, err := g.Usage()
	if err != nil {
		return u, err
	}
	t, err := g.needTree()
	if err != nil {
		return u, err
	}
	text, err := cgroupfs.Read(t.dir, g.commands()+"/cpu.stat")
	if err == nil {
		u.CPU, err = usedCPU(text)
	}
	if err != nil {
		return u, fmt.Errorf("cgroup: %w", g.gone(err))
	}
	u.MemoryPeak = -1
	switch g.driver.info.Version[Memory] {
	case 2: // since Linux 5.19
		if peak, err := t.number(g.commands() + "/memory.peak"); err == nil {
			u.MemoryPeak = peak
		}
	case 1:
		if peak, err := g.driver.v1.MemoryPeak(g.id); err == nil {
			u.MemoryPeak = peak
		}
	}
	return u, nil
}

// usedCPU reads usage_usec of a cpu.stat.
func usedCPU(text string) (time.Duration, error) {
	for line := range strings.Lines(text) {
		if n, ok := strings.CutPrefix(line, "usage_usec "); ok {
			us, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			return time.Duration(us) * time.Microsecond, err
		}
	}
	return 0, fmt.Errorf("cpu.stat has no usage_usec: %.80q", text)
}

func (t *tree) number(path string) (int64, error) {
	text, err := cgroupfs.Read(t.dir, path)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	return v, nil
}
