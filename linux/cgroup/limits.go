// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup/cgroupfs"
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

// apply writes the limits that cgroup2 holds to the group at path. A fresh group has none, so what
// is to be unlimited is not written.
func (t *tree) apply(k cgroupfs.Kernel, path string, l Limits, fresh bool) error {
	var buf [32]byte
	write := func(file string, value []byte) error {
		if err := k.Write(t.dir, path+"/"+file, value); err != nil {
			return fmt.Errorf("set %s of %s to %s: %w", file, path, value, err)
		}
		return nil
	}
	number := func(v int64) []byte {
		if v == 0 {
			return append(buf[:0], "max"...)
		}
		return strconv.AppendInt(buf[:0], v, 10)
	}
	for _, f := range t.limits {
		var err error
		switch {
		case f == CPU && !(fresh && l.CPU == 0):
			err = write("cpu.max", append(number(l.quota()), " 100000"...))
		case f == Memory && !(fresh && l.MemoryBytes == 0):
			// Swap first: memory must not go there when its limit falls.
			if t.swap {
				swap := "0"
				if l.MemoryBytes == 0 {
					swap = "max"
				}
				err = write("memory.swap.max", []byte(swap))
			}
			if err == nil {
				err = write("memory.max", number(l.MemoryBytes))
			}
		case f == PIDs && !(fresh && l.PIDs == 0):
			err = write("pids.max", number(int64(l.PIDs)))
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

// read reads the limits that cgroup2 holds into l.
func (t *tree) read(path string, l *Limits) error {
	for _, f := range t.limits {
		file := string(f) + ".max"
		text, err := cgroupfs.Read(t.dir, path+"/"+file)
		if err != nil {
			return err
		}
		v := int64(0) // no limit
		if first, _, _ := strings.Cut(strings.TrimSpace(text), " "); first != "max" {
			if v, err = strconv.ParseInt(first, 10, 64); err != nil {
				return fmt.Errorf("read %s of %s: %w", file, path, err)
			}
		}
		switch f {
		case CPU:
			l.CPU = float64(v) / period
		case Memory:
			l.MemoryBytes = v
		case PIDs:
			l.PIDs = int(v)
		}
	}
	return nil
}
