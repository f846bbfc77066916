// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package tree reads the kernel's list of processes: who descends from whom, and since when. It
// knows nothing of commands.
package tree

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
	dead                 bool // none of its threads lives
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
	if len(f) <= threadsField {
		return procEntry{}, false
	}
	parent, err := strconv.Atoi(string(f[1]))
	session, err2 := strconv.Atoi(string(f[3]))
	state := f[0][0]
	// The first thread may end before the others, which can fork yet.
	dead := (state == 'Z' || state == 'X') && len(f[threadsField]) == 1 && f[threadsField][0] <= '1'
	return procEntry{parent: parent, session: session, dead: dead}, err == nil && err2 == nil
}

// threadsField and startField are the places of num_threads and starttime in that list.
const threadsField, startField = 17, 19

// ticks is how many there are in a second of the times in /proc, on every Linux.
const ticks = 100

// Started is when a process was started, by [Clock], down to a hundredth of a second less.
func Started(pid int) (time.Duration, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // as in parseStat
	if len(f) <= startField {
		return 0, false
	}
	n, err := strconv.ParseInt(string(f[startField]), 10, 64)
	return time.Duration(n) * (time.Second / ticks), err == nil
}

// Clock is how long this kernel runs: what nobody sets, and what the kernel notes of each process.
func Clock() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // which every Linux since 2.6.39 has
	return time.Duration(now.Nano())
}

// Below lists the live processes in the session of pid, and what descends
// from them. While pid itself lives, also what descends from it; afterwards its
// number may be another's.
func Below(pid int, lives bool) []int {
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

// Children lists the children of a process, the dead among them, oldest first where the kernel tells them
// so. While none is reaped, a later list begins as an earlier one.
func Children(pid int) []int {
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil
	}
	if len(threads) > 1 { // each has some, and hands them to another when it ends
		return search(pid)
	}
	var all []int
	for _, thread := range threads {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + thread.Name() + "/children")
		if err != nil { // the thread has ended, or this kernel has no such file
			if _, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/task/" + thread.Name()); err == nil {
				return search(pid)
			}
			continue
		}
		for _, f := range bytes.Fields(b) {
			if child, err := strconv.Atoi(string(f)); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// search is Children by the list of all processes.
func search(pid int) []int {
	var all []int
	for _, e := range processes() {
		if e.parent == pid {
			all = append(all, e.pid)
		}
	}
	return all
}

// Lives reports whether a thread of a process lives.
func Lives(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	e, ok := parseStat(b)
	return ok && !e.dead
}

// Kill ends what list lists. It stops what it sees before it kills, so that a parent that
// forks cannot outrun it for long.
func Kill(list func() []int) {
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
