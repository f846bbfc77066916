// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"os"
	"slices"
	"strconv"
)

// StoppedNow lists the processes that a signal has stopped: every thread of theirs.
func StoppedNow() map[int]bool {
	all := make(map[int]bool)
	for _, e := range processes() {
		if e.pid != os.Getpid() && threadsAre(e.pid, "TZX") {
			all[e.pid] = true
		}
	}
	return all
}

// AllStopped reports whether every process but this one is stopped, traced and stopped, or dead.
func AllStopped() bool {
	for _, e := range processes() {
		if e.pid != os.Getpid() && !threadsAre(e.pid, "TtZX") {
			return false
		}
	}
	return true
}

// threadsAre reports whether every thread of a process is in one of these states.
func threadsAre(pid int, states string) bool {
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return os.IsNotExist(err) // it has ended
	}
	for _, t := range threads {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + t.Name() + "/stat")
		if err != nil {
			continue // as above
		}
		i := bytes.LastIndexByte(b, ')')
		if i < 0 || i+2 >= len(b) || !bytes.ContainsRune([]byte(states), rune(b[i+2])) {
			return false
		}
	}
	return true
}

// DeepestFirst lists all processes but this one, each after those that descend from it.
func DeepestFirst() []int {
	all := processes()
	parents := make(map[int]int, len(all))
	for _, e := range all {
		parents[e.pid] = e.parent
	}
	depth := make(map[int]int, len(all))
	for _, e := range all {
		for at := e.pid; at > 0 && depth[e.pid] <= len(all); at = parents[at] {
			depth[e.pid]++
		}
	}
	var out []int
	for _, e := range all {
		if e.pid != os.Getpid() {
			out = append(out, e.pid)
		}
	}
	slices.SortFunc(out, func(a, b int) int { return depth[b] - depth[a] })
	return out
}
