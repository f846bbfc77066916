// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// Limits of the commands of one sandbox together. A zero means no limit.
type Limits struct {
	// CPU is processor time in cores: 0.01 to 4096.
	CPU float64
	// MemoryBytes is memory, page cache included, with nothing in swap where
	// the Swap feature works: at least 1 MiB.
	MemoryBytes int64
	// PIDs is the number of processes and threads: 1 to 4194304, of which the
	// agent's own threads take none.
	PIDs int
}

const (
	period = 100_000 // of the CPU limit, in µs: the kernel's default

	minCPU, maxCPU = 0.01, 4096 // the kernel takes no quota below 1 ms
	minMemory      = 1 << 20    // below it not even a shell starts
	maxMemory      = 1 << 60
	maxPIDs        = 1 << 22 // the kernel's PID_MAX_LIMIT

	// SpawnerThreads is how many threads of the agent join the v1 groups of
	// the commands at most. They are charged there, so the limit is raised by it.
	SpawnerThreads = 2

	// socketLimit is v1's own limit of what sockets hold. It is socketShare of that of
	// memory, which does not count them: UDP keeps it, TCP takes about 70 kB more for each
	// connection past it.
	socketLimit = "memory.kmem.tcp.limit_in_bytes"
	socketShare = 4
)

func (l Limits) check(i *Info) error {
	switch {
	case l.CPU != 0 && !(l.CPU >= minCPU && l.CPU <= maxCPU): // NaN too
		return fault.InvalidField("cpu", "%v cores: want %v to %v, or 0 for no limit", l.CPU, minCPU, maxCPU)
	case l.MemoryBytes != 0 && (l.MemoryBytes < minMemory || l.MemoryBytes > maxMemory):
		return fault.InvalidField("memory", "%d bytes: want %d to %d, or 0 for no limit", l.MemoryBytes, minMemory, int64(maxMemory))
	case l.PIDs < 0 || l.PIDs > maxPIDs:
		return fault.InvalidField("pids", "%d: want 1 to %d, or 0 for no limit", l.PIDs, maxPIDs)
	case l.CPU != 0 && i.Err(CPU) != nil:
		return i.Err(CPU)
	case l.MemoryBytes != 0 && i.Err(Memory) != nil:
		return i.Err(Memory)
	case l.PIDs != 0 && i.Err(PIDs) != nil:
		return i.Err(PIDs)
	}
	return nil
}

func (l Limits) quota() int64 { return int64(math.Round(l.CPU * period)) }

// apply writes the limits of a hierarchy to the group at path. A fresh group
// has none, so what is to be unlimited is not written.
func (h *hierarchy) apply(k kernel, path string, l Limits, fresh bool) error {
	var buf [32]byte
	write := func(file string, value []byte) error {
		if err := k.write(h.dir, path+"/"+file, value); err != nil {
			return fmt.Errorf("set %s of %s to %s: %w", file, path, value, err)
		}
		return nil
	}
	// number formats a limit; off is how "none" is spelt.
	number := func(v int64, off string) []byte {
		if v == 0 {
			return append(buf[:0], off...)
		}
		return strconv.AppendInt(buf[:0], v, 10)
	}
	for _, f := range h.limits {
		var err error
		switch {
		case f == CPU && fresh && l.CPU == 0, f == Memory && fresh && l.MemoryBytes == 0, f == PIDs && fresh && l.PIDs == 0:
		case f == CPU && h.v2:
			err = write("cpu.max", append(number(l.quota(), "max"), " 100000"...))
		case f == CPU:
			err = write("cpu.cfs_quota_us", number(l.quota(), "-1"))
		case f == Memory && h.v2:
			// Swap first: memory must not go there when its limit falls.
			if h.swap {
				swap := "0"
				if l.MemoryBytes == 0 {
					swap = "max"
				}
				err = write("memory.swap.max", []byte(swap))
			}
			if err == nil {
				err = write("memory.max", number(l.MemoryBytes, "max"))
			}
		case f == Memory:
			// v1 holds memory ≤ memory and swap at all times: down in the one
			// order, up in the other.
			value := number(l.MemoryBytes, "-1")
			err = write("memory.limit_in_bytes", value)
			if h.swap && errors.Is(err, unix.EINVAL) {
				if err = write("memory.memsw.limit_in_bytes", value); err == nil {
					err = write("memory.limit_in_bytes", value)
				}
			} else if h.swap && err == nil {
				err = write("memory.memsw.limit_in_bytes", value)
			}
			if h.sockets && err == nil {
				err = write(socketLimit, number(l.MemoryBytes/socketShare, "-1"))
			}
		case f == PIDs:
			v := int64(l.PIDs)
			if v != 0 && !h.v2 {
				v += SpawnerThreads
			}
			err = write("pids.max", number(v, "max"))
		}
		if f == Memory && errors.Is(err, unix.EBUSY) {
			return inUse(l.MemoryBytes, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func inUse(limit int64, err error) error {
	return fault.Wrap(fault.Conflict, err, "memory: %d bytes is less than what is in use", limit).
		WithRemedy("end processes of the sandbox first, or ask for more")
}

// current reads the limits of a hierarchy back into l.
func (h *hierarchy) current(path string, l *Limits) error {
	for _, f := range h.limits {
		var file string
		switch {
		case f == CPU && h.v2:
			file = "cpu.max"
		case f == CPU:
			file = "cpu.cfs_quota_us"
		case f == Memory && h.v2:
			file = "memory.max"
		case f == Memory:
			file = "memory.limit_in_bytes"
		default:
			file = "pids.max"
		}
		text, err := read(h.dir, path+"/"+file)
		if err != nil {
			return err
		}
		first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
		v := int64(0) // no limit: "max", -1, or v1's largest number of pages
		if first != "max" {
			if v, err = strconv.ParseInt(first, 10, 64); err != nil {
				return fmt.Errorf("read %s of %s: %w", file, path, err)
			}
		}
		if v < 0 || v > maxMemory {
			v = 0
		}
		switch f {
		case CPU:
			l.CPU = float64(v) / period
		case Memory:
			l.MemoryBytes = v
		case PIDs:
			if v != 0 && !h.v2 {
				v -= SpawnerThreads
			}
			l.PIDs = int(v)
		}
	}
	return nil
}
