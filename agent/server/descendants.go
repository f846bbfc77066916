// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// procEntry is what is needed of /proc/<pid>/stat.
type procEntry struct {
	pid, parent, session int
	dead                 bool
}

// processes reads /proc. What ends meanwhile is left out.
func processes() []procEntry {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []procEntry
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		if e, ok := parseStat(b); ok {
			e.pid = pid
			all = append(all, e)
		}
	}
	return all
}

// parseStat reads the fields after the program's name, which may hold anything.
func parseStat(b []byte) (procEntry, bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return procEntry{}, false
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 4 {
		return procEntry{}, false
	}
	parent, err := strconv.Atoi(string(f[1]))
	session, err2 := strconv.Atoi(string(f[3]))
	state := f[0][0]
	return procEntry{parent: parent, session: session, dead: state == 'Z' || state == 'X'}, err == nil && err2 == nil
}

// ticks is how many there are in a second of the times in /proc, on every Linux.
const ticks = 100

// age is how long ago a process was started, up to a hundredth of a second more.
func age(pid int) (time.Duration, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // as in parseStat
	const start = 19
	if len(f) <= start {
		return 0, false
	}
	n, err := strconv.ParseInt(string(f[start]), 10, 64)
	var now unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0, false
	}
	return time.Duration(now.Nano()) - time.Duration(n)*(time.Second/ticks), true
}

// descendants lists the live processes in the session of pid, and what descends
// from them. While pid itself lives, also what descends from it; afterwards its
// number may be another's.
func descendants(pid int, lives bool) []int {
	if pid <= 1 {
		return nil
	}
	all := processes()
	in := make(map[int]bool)
	if lives {
		in[pid] = true
	}
	for grew := true; grew; {
		grew = false
		for _, e := range all {
			if !in[e.pid] && (e.session == pid || in[e.parent]) {
				in[e.pid] = true
				grew = true
			}
		}
	}
	var live []int
	for _, e := range all {
		if in[e.pid] && !e.dead {
			live = append(live, e.pid)
		}
	}
	return live
}

// killDescendants stops what it sees before it kills, so that a parent that
// forks cannot outrun it for long.
func killDescendants(list func() []int) {
	const rounds = 20
	for range rounds {
		pids := list()
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
