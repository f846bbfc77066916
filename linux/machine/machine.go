// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package machine reads what the whole machine uses: processors, memory, a disk, processes. It knows no sandbox.
package machine

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Use is what the machine uses.
type Use struct {
	CPU                 time.Duration // of all processors that were busy, since it came up; what a hypervisor took is none of it
	CPUs                int           // processors there are
	MemoryBytes         int64         // what programs cannot get any more
	MemorySize          int64
	DiskBytes, DiskSize int64
	Tasks, TaskLimit    int64 // processes and threads
}

// tick is what /proc/stat counts in; it is the same on every architecture that Go runs on.
const tick = time.Second / 100

// Read reads what the machine uses, and of disks that which has dir.
func Read(dir string) (u Use, err error) {
	files := make(map[string][]byte)
	for _, name := range []string{"stat", "meminfo", "loadavg", "sys/kernel/pid_max", "sys/kernel/threads-max"} {
		if files[name], err = os.ReadFile("/proc/" + name); err != nil {
			return u, err
		}
	}
	if err := u.stat(files["stat"]); err != nil {
		return u, err
	}
	total, ok := field(files["meminfo"], "MemTotal:")
	free, ok2 := field(files["meminfo"], "MemAvailable:")
	if !ok || !ok2 {
		return u, fmt.Errorf("/proc/meminfo has no MemTotal or no MemAvailable")
	}
	u.MemorySize, u.MemoryBytes = total<<10, (total-free)<<10
	if u.Tasks, err = tasks(files["loadavg"]); err != nil {
		return u, err
	}
	for _, name := range []string{"sys/kernel/pid_max", "sys/kernel/threads-max"} {
		n, err := strconv.ParseInt(string(bytes.TrimSpace(files[name])), 10, 64)
		if err != nil {
			return u, fmt.Errorf("/proc/%s: %w", name, err)
		}
		if u.TaskLimit == 0 || n < u.TaskLimit {
			u.TaskLimit = n
		}
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return u, fmt.Errorf("how full the disk of %s is: %w", dir, err)
	}
	u.DiskSize = int64(fs.Blocks) * int64(fs.Bsize)
	u.DiskBytes = u.DiskSize - int64(fs.Bfree)*int64(fs.Bsize)
	return u, nil
}

// stat reads /proc/stat, see proc_stat(5).
func (u *Use) stat(b []byte) error {
	for line := range bytes.Lines(b) {
		words := bytes.Fields(line)
		if len(words) == 0 || !bytes.HasPrefix(words[0], []byte("cpu")) {
			continue
		}
		if len(words[0]) > len("cpu") {
			u.CPUs++
			continue
		}
		// user, nice, system, idle, iowait, irq, softirq; guests' time is in user's already
		for n, word := range words[1:min(len(words), 8)] {
			ticks, err := strconv.ParseInt(string(word), 10, 64)
			if err != nil {
				return fmt.Errorf("/proc/stat: %w", err)
			}
			if idle := n == 3 || n == 4; !idle {
				u.CPU += time.Duration(ticks) * tick
			}
		}
	}
	if u.CPUs == 0 {
		return fmt.Errorf("/proc/stat has no processor")
	}
	return nil
}

// tasks reads /proc/loadavg: "0.20 0.18 0.12 1/80 11206".
func tasks(b []byte) (int64, error) {
	words := bytes.Fields(b)
	if len(words) < 4 {
		return 0, fmt.Errorf("/proc/loadavg is %q", b)
	}
	_, all, _ := bytes.Cut(words[3], []byte("/"))
	return strconv.ParseInt(string(all), 10, 64)
}

// field returns the number behind a name.
func field(b []byte, name string) (int64, bool) {
	for line := range bytes.Lines(b) {
		if words := bytes.Fields(line); len(words) >= 2 && string(words[0]) == name {
			n, err := strconv.ParseInt(string(words[1]), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
