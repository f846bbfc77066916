// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is a kind of thing that can leak.
type Kind string

// The kinds, each with what its names are.
const (
	Processes   Kind = "process"    // number and program
	Mounts      Kind = "mount"      // namespace and where
	Cgroups     Kind = "cgroup"     // directory
	Namespaces  Kind = "namespace"  // kind and number, of processes
	Sockets     Kind = "socket"     // path of a Unix socket
	Descriptors Kind = "descriptor" // of the servers: what it is open on, numbers left out
	Loops       Kind = "loop"       // device and file
	Directories Kind = "directory"  // path, also in file systems that only the servers have mounted
)

// Kinds lists every kind.
func Kinds() []Kind {
	return []Kind{Processes, Mounts, Cgroups, Namespaces, Sockets, Descriptors, Loops, Directories}
}

// Snapshot is what a scope held at one time: for each kind the names, and how
// often each was there.
type Snapshot map[Kind]map[string]int

// Take looks. What comes and goes while it does may be seen or not.
func Take(s Scope) (Snapshot, error) {
	out := Snapshot{}
	for _, k := range Kinds() {
		out[k] = map[string]int{}
	}
	procs, err := s.Processes()
	if err != nil {
		return nil, err
	}
	for _, p := range procs {
		state := ""
		if p.Dead {
			state = ", dead"
		}
		out[Processes][fmt.Sprintf("%d of tick %s (%s%s)", p.PID, p.Start, p.Name, state)]++
	}
	steps := []struct {
		kind Kind
		look func(Scope, []Process, map[string]int) error
	}{
		{Mounts, mounts}, {Cgroups, cgroups}, {Namespaces, namespaces}, {Sockets, sockets},
		{Descriptors, descriptors}, {Loops, loops}, {Directories, directories},
	}
	for _, step := range steps {
		if err := step.look(s, procs, out[step.kind]); err != nil {
			return nil, fmt.Errorf("look for each %s: %w", step.kind, err)
		}
	}
	return out, nil
}

// Count returns how many there are of a kind.
func (s Snapshot) Count(k Kind) int {
	n := 0
	for _, c := range s[k] {
		n += c
	}
	return n
}

// String returns the counts in one line.
func (s Snapshot) String() string {
	var parts []string
	for _, k := range Kinds() {
		parts = append(parts, fmt.Sprintf("%s %d", k, s.Count(k)))
	}
	return strings.Join(parts, ", ")
}

// Cache is what may grow up to a bound without being a leak.
type Cache struct {
	Kind Kind
	Part string // of the name; "" is of each
	Most int    // of one name, before and after
}

// Beyond returns what s has and before had not, a line each, sorted; none is the
// proof that nothing leaked.
func (s Snapshot) Beyond(before Snapshot, caches []Cache) []string {
	var out []string
	for _, k := range Kinds() {
		for _, name := range slices.Sorted(maps.Keys(s[k])) {
			now, then := s[k][name], before[k][name]
			for _, c := range caches {
				if c.Kind == k && strings.Contains(name, c.Part) {
					then = max(then, c.Most)
				}
			}
			if now > then {
				out = append(out, fmt.Sprintf("%s %s: %d, before %d", k, name, now, then))
			}
		}
	}
	return out
}
