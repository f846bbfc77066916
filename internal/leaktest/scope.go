// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Scope says what belongs to a server. A thing does if any of it fits.
type Scope struct {
	// Dir is the server's own directory, absolute and without links.
	Dir string
	// Servers are the server's processes. All that they started belongs too;
	// they themselves are not counted, but their descriptors are.
	Servers []int
	// Marks are fragments of names that nothing of others' has: of cgroups and
	// of sockets.
	Marks []string
}

// Process is a running or dead process that has not been reaped.
type Process struct {
	PID   int
	Name  string
	Start string // in ticks since boot: with PID, it names the process for ever
	Dead  bool   // a zombie
}

type proc struct {
	Stat
	marked bool
}

// Processes returns what belongs to the scope, but for its servers, by number.
func (s Scope) Processes() ([]Process, error) {
	all, err := s.table()
	if err != nil {
		return nil, err
	}
	var out []Process
	for _, p := range all {
		if !slices.Contains(s.Servers, p.PID) && s.owns(all, p) {
			out = append(out, p.Process)
		}
	}
	slices.SortFunc(out, func(a, b Process) int { return a.PID - b.PID })
	return out, nil
}

func (s Scope) table() (map[int]proc, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := make(map[int]proc, len(entries))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := ReadStat(pid)
		if err != nil {
			continue // it has ended
		}
		p := proc{Stat: stat}
		groups, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cgroup")) // the same
		p.marked = s.marked(string(groups))
		all[pid] = p
	}
	return all, nil
}

// owns reports whether p, or one of its ancestors, belongs to the scope.
func (s Scope) owns(all map[int]proc, p proc) bool {
	for range len(all) { // a number that was reused could make a ring
		if p.marked || slices.Contains(s.Servers, p.Parent) {
			return true
		}
		next, ok := all[p.Parent]
		if !ok {
			return false
		}
		p = next
	}
	return false
}

func (s Scope) marked(text string) bool {
	return slices.ContainsFunc(s.Marks, func(m string) bool { return m != "" && strings.Contains(text, m) })
}

// within reports whether path is Dir or below it.
func (s Scope) within(path string) bool {
	return s.Dir != "" && (path == s.Dir || strings.HasPrefix(path, s.Dir+"/"))
}
