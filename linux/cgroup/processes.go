// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup/cgroupfs"
)

// Process is what the kernel tells of a process of a sandbox's commands. Its name is the process's to choose.
type Process struct {
	PID         int // in the sandbox
	Parent      int // likewise; 0: outside of the commands
	Name        string
	State       byte          // a letter of proc_pid_stat(5)
	CPU         time.Duration // that it got of processors
	Age         time.Duration
	MemoryBytes int64 // of its own and shared, that are in memory
	Threads     int
}

// Bounds of a reading: what is beyond is counted by Usage alone.
const (
	maxProcesses = 4096
	maxGroups    = 4096
)

// Processes reads the processes of the commands, in no order; after Activate. One that comes or goes meanwhile is in it or not.
// Nothing in the sandbox is asked, and a frozen one answers too.
func (g *Group) Processes(ctx context.Context) ([]Process, error) {
	before, err := g.pids(ctx)
	if err != nil {
		return nil, err
	}
	up := sinceBoot()
	numbers := make(map[int]int, len(before)) // here, and inside
	var all []Process
	var hosts, parents []int
	for pid := range before {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, parent, ok := readProcess(pid, up)
		if !ok {
			continue // it has ended
		}
		numbers[pid] = p.PID
		all, hosts, parents = append(all, p), append(hosts, pid), append(parents, parent)
	}
	// A number is another's as soon as its process has ended: what was read is the sandbox's if it has it still.
	after, err := g.pids(ctx)
	if err != nil {
		return nil, err
	}
	kept := all[:0]
	for i, p := range all {
		if after[hosts[i]] {
			p.Parent = numbers[parents[i]]
			kept = append(kept, p)
		}
	}
	return kept, nil
}

// pids lists the processes of the commands, by their numbers here.
func (g *Group) pids(ctx context.Context) (map[int]bool, error) {
	t, err := g.needTree()
	if err != nil {
		return nil, err
	}
	all := make(map[int]bool)
	left := []string{g.commands()}
	for seen := 0; len(left) > 0 && seen < maxGroups && len(all) < maxProcesses; seen++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		group := left[len(left)-1]
		left = left[:len(left)-1]
		text, err := cgroupfs.Read(t.dir, group+"/cgroup.procs")
		if err != nil {
			if group == g.commands() {
				return nil, fmt.Errorf("cgroup: %w", g.gone(err))
			}
			continue // it was removed, or has threads alone
		}
		for line := range strings.SplitSeq(text[:strings.LastIndexByte(text, '\n')+1], "\n") {
			if pid, err := strconv.Atoi(line); err == nil && pid > 0 && len(all) < maxProcesses {
				all[pid] = true
			}
		}
		children, err := cgroupfs.Children(t.dir, group)
		if err == nil {
			slices.Sort(children)
			for _, name := range children {
				if len(left) < maxGroups {
					left = append(left, group+"/"+name)
				}
			}
		}
	}
	return all, nil
}

// readProcess reads what /proc tells of a process. Its directory is opened first: what is read in it is of one process.
func readProcess(pid int, up time.Duration) (p Process, parent int, ok bool) {
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return p, 0, false
	}
	defer unix.Close(dir)
	stat, err := readProc(dir, "stat")
	if err != nil {
		return p, 0, false
	}
	status, err := readProc(dir, "status")
	if err != nil {
		return p, 0, false
	}
	first, last := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')') // the name may hold any of the two
	if first < 0 || last < first {
		return p, 0, false
	}
	p.Name = string(stat[first+1 : last])
	f := strings.Fields(string(stat[last+1:])) // from field 3 on
	if len(f) < 22 || len(f[0]) != 1 {
		return p, 0, false
	}
	number := func(field int) int64 {
		n, _ := strconv.ParseInt(f[field-3], 10, 64) // the kernel writes numbers
		return n
	}
	const tick = time.Second / 100 // USER_HZ is 100 on all that Go runs on
	p.State = f[0][0]
	p.CPU = time.Duration(number(14)+number(15)) * tick
	p.Age = max(0, up-time.Duration(number(22))*tick)
	p.Threads = int(number(20))
	p.MemoryBytes = number(24) * int64(os.Getpagesize())
	p.PID = numberInside(status)
	return p, int(number(4)), p.PID > 0
}

// numberInside is the number of a process in the namespace below ours, or where there is none in ours.
func numberInside(status []byte) int {
	for line := range bytes.Lines(status) {
		if text, ok := bytes.CutPrefix(line, []byte("NSpid:")); ok {
			all := strings.Fields(string(text))
			if len(all) == 0 {
				return 0
			}
			n, _ := strconv.Atoi(all[min(1, len(all)-1)]) // the kernel writes numbers
			return n
		}
	}
	return 0
}

// readProc reads a file of a process, which the kernel writes at once.
func readProc(dir int, name string) ([]byte, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	b := make([]byte, 8<<10)
	n, err := unix.Read(fd, b)
	if err != nil || n <= 0 {
		return nil, unix.ESRCH
	}
	return b[:n], nil
}

func sinceBoot() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
