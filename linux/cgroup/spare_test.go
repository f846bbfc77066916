// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// spareOnes gives the inodes of the spare groups of the hierarchies, by name.
func spareOnes(t *testing.T, d *Driver) map[string][]uint64 {
	t.Helper()
	found := map[string][]uint64{}
	for i := range d.v1 {
		names, err := children(d.v1[i].dir, ".")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasPrefix(name, spare) {
				found[name] = append(found[name], inodeAt(t, d.v1[i].dir, name))
			}
		}
	}
	return found
}

func inodeAt(t *testing.T, dir int, name string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, 0); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return st.Ino
}

func needV1(t *testing.T, d *Driver) {
	t.Helper()
	if len(d.v1) == 0 {
		t.Skip("needs cgroup v1: cgroup2 cannot rename a group")
	}
}

func TestASpareGroupBecomesTheNextSandboxs(t *testing.T) {
	d := openHost(t, Kill, PIDs)
	needV1(t, d)
	if err := d.MakeSpares(); err != nil {
		t.Fatal(err)
	}
	before := spareOnes(t, d)
	if len(before) != maxSpares {
		t.Fatalf("%d sets were made, and there are %v", maxSpares, before)
	}
	if ids, err := d.List(); err != nil || len(ids) != 0 {
		t.Errorf("a spare group is listed as a sandbox's: %q, %v", ids, err)
	}
	g := create(t, d, Limits{PIDs: 123})
	after := spareOnes(t, d)
	for name, inodes := range before {
		if _, still := after[name]; still {
			continue
		}
		for i := range d.v1 {
			if got := inodeAt(t, d.v1[i].dir, g.ID()); got != inodes[i] {
				t.Errorf("%s: the sandbox's group is another than the spare one", d.v1[i].path)
			}
		}
	}
	if len(after) != maxSpares-1 {
		t.Errorf("of %d spare sets one was used, and left are %v", maxSpares, after)
	}
	if l, err := g.Limits(); err != nil || l.PIDs != 123 {
		t.Errorf("limits %+v, %v", l, err)
	}
	for range maxSpares - 1 {
		create(t, d, Limits{})
	}
	if left := spareOnes(t, d); len(left) != 0 {
		t.Errorf("the spare groups are there still: %v", left)
	}
	last := create(t, d, Limits{PIDs: 45}) // without a spare one
	if l, err := last.Limits(); err != nil || l.PIDs != 45 {
		t.Errorf("limits %+v, %v", l, err)
	}
	if err := d.MakeSpares(); err != nil {
		t.Fatal(err)
	}
	if left := spareOnes(t, d); len(left) != maxSpares {
		t.Errorf("%d sets are made again, and there are %v", maxSpares, left)
	}
}

func TestNoMoreGroupsAreSpareThanAreOfUse(t *testing.T) {
	d := openHost(t)
	needV1(t, d)
	for range 3 * maxSpares {
		if err := d.MakeSpares(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(spareOnes(t, d)); n != maxSpares {
		t.Errorf("%d sets are spare, want %d", n, maxSpares)
	}
	// openHost sees to it that Close leaves none.
}

func TestAServerRemovesTheSpareGroupsOfTheOneBefore(t *testing.T) {
	d := openHost(t, Kill, PIDs)
	needV1(t, d)
	if err := d.MakeSpares(); err != nil {
		t.Fatal(err)
	}
	for h := range d.hierarchies {
		if err := lock(h.dir, unix.LOCK_UN); err != nil { // as the end of a process does
			t.Fatal(err)
		}
	}
	next, err := Open(Options{Namespace: d.namespace})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = next.Close() }()
	if left := spareOnes(t, next); len(left) != 0 {
		t.Errorf("spare groups of a server that is gone: %v", left)
	}
	// One that is not gone after all makes what it misses.
	if l, err := create(t, d, Limits{PIDs: 67}).Limits(); err != nil || l.PIDs != 67 {
		t.Errorf("limits %+v, %v", l, err)
	}
}
