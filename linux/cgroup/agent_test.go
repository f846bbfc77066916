// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup/cgroupfs"
)

var someAgent = Limits{CPU: 0.5, MemoryBytes: 64 << 20, PIDs: 100}

func take(t *testing.T, d *Driver, id string) *Agent {
	t.Helper()
	a, err := d.Agent(id)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Without v1 controllers the limits are those of ID/agent.
func TestAnAgentIsLimitedInTheSandboxsV2Group(t *testing.T) {
	m := newModel(t, "cpu memory pids")
	d := openModel(t, m)
	d.agents = someAgent
	a := take(t, d, "abcd")
	if len(a.Files()) != 0 {
		t.Errorf("it has %d files of v1", len(a.Files()))
	}
	g, err := d.Create("abcd", someLimits, owner)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Prepare(); err != nil {
		t.Fatal(err)
	}
	f, err := g.MakeAgent()
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if err := g.Activate(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(m.root, cgroupfs.Top, d.namespace, "abcd", "agent")
	want := map[string]string{"cpu.max": "50000 100000", "memory.max": strconv.Itoa(64 << 20), "memory.swap.max": "0", "pids.max": "100"}
	see := func(when string) {
		t.Helper()
		for file, value := range want {
			if got := m.get(dir, file); got != value {
				t.Errorf("%s: %s is %q, want %q", when, file, got, value)
			}
		}
	}
	see("after Activate")
	m.put(dir, "memory.events", "oom 1\noom_kill 1\n")
	if !a.OutOfMemory() {
		t.Error("it was ended for its memory, and that is not told")
	}
	m.put(dir, "memory.max", "max\n") // as a server of an earlier version left it
	if err := g.Renew(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	see("after Renew")
	b := take(t, d, "abcd")
	b.Mark()
	if b.OutOfMemory() {
		t.Error("the end of the one before is told")
	}
	for _, x := range []*Agent{a, b} {
		if err := x.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := unix.Access(dir, unix.F_OK); err != nil {
		t.Errorf("the sandbox's group went with the agent: %v", err)
	}
}
