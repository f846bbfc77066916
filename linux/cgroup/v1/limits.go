// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup/cgroupfs"
)

// Limits are cgroup.Limits.
type Limits struct {
	CPU         float64
	MemoryBytes int64
	PIDs        int
}

const (
	period   = 100_000 // of the CPU limit, in µs: the kernel's default
	infinite = 1 << 60 // bytes of memory; above it is v1's largest number of pages

	// SpawnerThreads is how many threads of the agent join the groups of
	// the commands at most. They are charged there, so the limit is raised by it.
	SpawnerThreads = 2

	// socketLimit is the limit of what sockets hold. It is socketShare of that of
	// memory, which does not count them: UDP keeps it, TCP takes about 70 kB more for each
	// connection past it.
	socketLimit = "memory.kmem.tcp.limit_in_bytes"
	socketShare = 4
)

// Apply writes all limits of a group. A fresh one has none, so what is to be unlimited is not
// written. It is EBUSY where more memory is in use than the limit, and cannot be freed.
func (t *Tree) Apply(group string, l Limits, fresh bool) error {
	for i := range t.hierarchies {
		if err := t.hierarchies[i].apply(t.kernel, group, l, fresh); err != nil {
			return err
		}
	}
	return nil
}

func (h *hierarchy) apply(k cgroupfs.Kernel, group string, l Limits, fresh bool) error {
	for _, c := range h.controllers {
		var err error
		switch {
		case c == CPU && !(fresh && l.CPU == 0):
			err = h.write(k, group, "cpu.cfs_quota_us", int64(math.Round(l.CPU*period)), "-1")
		case c == Memory && !(fresh && l.MemoryBytes == 0):
			err = h.applyMemory(k, group, l.MemoryBytes)
		case c == PIDs && !(fresh && l.PIDs == 0):
			v := int64(l.PIDs)
			if v != 0 {
				v += SpawnerThreads
			}
			err = h.write(k, group, "pids.max", v, "max")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// applyMemory keeps to what v1 holds at all times, memory ≤ memory and swap: down in the one
// order, up in the other.
func (h *hierarchy) applyMemory(k cgroupfs.Kernel, group string, bytes int64) error {
	const memory, both = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
	err := h.write(k, group, memory, bytes, "-1")
	if h.swap && errors.Is(err, unix.EINVAL) {
		if err = h.write(k, group, both, bytes, "-1"); err == nil {
			err = h.write(k, group, memory, bytes, "-1")
		}
	} else if h.swap && err == nil {
		err = h.write(k, group, both, bytes, "-1")
	}
	if h.sockets && err == nil {
		err = h.write(k, group, socketLimit, bytes/socketShare, "-1")
	}
	return err
}

// write writes a limit; unlimited is how zero is spelt.
func (h *hierarchy) write(k cgroupfs.Kernel, group, file string, v int64, unlimited string) error {
	value := []byte(unlimited)
	if v != 0 {
		value = strconv.AppendInt(nil, v, 10)
	}
	if err := k.Write(h.dir, group+"/"+file, value); err != nil {
		return fmt.Errorf("set %s of %s to %s: %w", file, group, value, err)
	}
	return nil
}

// Limits reads the limits of a group that v1 holds into l.
func (t *Tree) Limits(group string, l *Limits) error {
	for _, h := range t.hierarchies {
		for _, c := range h.controllers {
			file := map[string]string{CPU: "cpu.cfs_quota_us", Memory: "memory.limit_in_bytes", PIDs: "pids.max"}[c]
			text, err := cgroupfs.Read(h.dir, group+"/"+file)
			if err != nil {
				return err
			}
			v := int64(0) // no limit
			if text = strings.TrimSpace(text); text != "max" {
				if v, err = strconv.ParseInt(text, 10, 64); err != nil {
					return fmt.Errorf("read %s of %s: %w", file, group, err)
				}
			}
			if v < 0 || v > infinite {
				v = 0
			}
			switch c {
			case CPU:
				l.CPU = float64(v) / period
			case Memory:
				l.MemoryBytes = v
			case PIDs:
				l.PIDs = int(max(0, v-SpawnerThreads))
			}
		}
	}
	return nil
}
