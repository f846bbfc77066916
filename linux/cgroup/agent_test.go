// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

var someAgent = Limits{CPU: 0.5, MemoryBytes: 64 << 20, PIDs: 100}

// openAgents is openHost with limits of agents that are v1's, and sees to it that no group of
// an agent is left before Close, which would remove it.
func openAgents(t *testing.T) *Driver {
	t.Helper()
	d := openHost(t, PIDs, Memory, CPU, Kill)
	needV1(t, d)
	d.limits = someAgent
	return d
}

// numbers lists the v1 groups of agents.
func numbers(t *testing.T, d *Driver) []string {
	t.Helper()
	var all []string
	for i := range d.v1 {
		names, err := children(d.v1[i].dir, ".")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, slices.DeleteFunc(names, func(name string) bool { return agentNumber(name) < 0 })...)
	}
	return all
}

// within starts a process in the groups of a.
func within(t *testing.T, a *Agent, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	onThread(func() {
		for _, f := range a.Files() {
			if _, err := f.WriteString("0"); err != nil {
				t.Error(err)
				return
			}
		}
		if err := cmd.Start(); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func take(t *testing.T, d *Driver, id string) *Agent {
	t.Helper()
	a, err := d.Agent(id)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestEachAgentHasGroupsWithTheirLimits(t *testing.T) {
	d := openAgents(t)
	for _, ready := range []bool{false, true} {
		if ready {
			if err := d.MakeSpares(); err != nil {
				t.Fatal(err)
			}
		}
		made := len(numbers(t, d))
		one, two := take(t, d, "abcd"), take(t, d, "efgh")
		if now := len(numbers(t, d)); ready && now != made {
			t.Errorf("groups were ready, and %d became %d", made, now)
		}
		if one.path() == two.path() {
			t.Errorf("two agents have the group %s", one.path())
		}
		cmd := within(t, one, "/bin/sleep", "1000")
		group := "/" + top + "/" + d.namespace + "/" + one.path()
		want := map[string]string{"cpu": group, "memory": group, "pids": group}
		if diff := cmp.Diff(v1Paths(t, fmt.Sprintf("/proc/%d/cgroup", cmd.Process.Pid)), want); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
		var got Limits
		for i := range d.v1 {
			if err := d.v1[i].current(one.path(), &got); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(got, someAgent); diff != "" {
			t.Errorf("limits (-got +want):\n%s", diff)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for range 2 {
			for _, a := range []*Agent{one, two} {
				if err := a.Remove(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
		if left := len(numbers(t, d)); left > len(d.v1)*maxSpares {
			t.Errorf("%d groups are left: %v", left, numbers(t, d))
		}
	}
	for range 3 {
		if err := d.MakeSpares(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(numbers(t, d)); n != len(d.v1)*maxSpares {
		t.Errorf("%d groups are ready, want %d in each of %d hierarchies", n, maxSpares, len(d.v1))
	}
	if ids, err := d.List(); err != nil || len(ids) != 0 {
		t.Errorf("the groups of an agent are listed as a sandbox's: %q, %v", ids, err)
	}
}

func TestAnAgentThatTheKernelEndsForMemoryIsTold(t *testing.T) {
	d := openAgents(t)
	a := take(t, d, "abcd")
	hog := func() {
		_ = within(t, a, "/usr/bin/tail", "/dev/zero").Wait()
	}
	_ = within(t, a, "/bin/false").Wait()
	if a.OutOfMemory() {
		t.Error("it is told out of memory, and ended by itself")
	}
	hog()
	if !a.OutOfMemory() {
		t.Error("it was ended for its memory, and that is not told")
	}
	a.Mark()
	if a.OutOfMemory() {
		t.Error("the end of the one before is told")
	}
	hog()
	if !a.OutOfMemory() {
		t.Error("the second end is not told")
	}
	if err := a.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAServerFindsTheAgentsOfTheOneBefore(t *testing.T) {
	d := openAgents(t)
	create(t, d, Limits{}) // which keeps the namespace when the next one is closed
	if err := d.MakeSpares(); err != nil {
		t.Fatal(err)
	}
	lives, forgotten := take(t, d, "abcd"), take(t, d, "efgh")
	kept, lost := within(t, lives, "/bin/sleep", "1000"), within(t, forgotten, "/bin/sleep", "1000")
	old := exec.Command("/bin/sleep", "1000") // of a server that had one group for all
	if err := old.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = old.Process.Kill(); _ = old.Wait() })
	for i := range d.v1 {
		path := filepath.Join(d.v1[i].path, top, d.namespace, "_agents", "cgroup.procs")
		if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strconv.Itoa(old.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for h := range d.hierarchies {
		if err := lock(h.dir, unix.LOCK_UN); err != nil { // as the end of a process does
			t.Fatal(err)
		}
	}
	next, err := Open(Options{Namespace: d.namespace, Agents: someAgent})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = next.Close() }()
	if n := len(numbers(t, next)); n != 2*len(next.v1) {
		t.Errorf("left of the server before: %v, want the groups of the two that run", numbers(t, next))
	}
	found, earlier := next.FindAgent("abcd", kept.Process.Pid), next.FindAgent("ijkl", old.Process.Pid)
	if found.path() != lives.path() || earlier.number >= 0 {
		t.Errorf("found in %s and %d, want %s and none", found.path(), earlier.number, lives.path())
	}
	if err := next.MakeSpares(); err != nil { // and takes neither for its own
		t.Fatal(err)
	}
	if n := len(numbers(t, next)); n != (2+maxSpares)*len(next.v1) {
		t.Errorf("beside the two that run %d are ready: %v", maxSpares, numbers(t, next))
	}
	for _, cmd := range []*exec.Cmd{kept, lost, old} {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for _, a := range []*Agent{found, earlier} {
		if a.OutOfMemory() {
			t.Error("it was killed, and is told out of memory")
		}
		if err := a.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); len(numbers(t, next)) != maxSpares*len(next.v1); runtime.Gosched() {
		if err := next.MakeSpares(); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("what nobody found is left behind: %v", numbers(t, next))
		}
	}
}

func TestNothingIsLeftOfAnAgentThatCannotBeMade(t *testing.T) {
	d := openAgents(t)
	d.limits.PIDs = maxPIDs + 1 // which the kernel refuses, last or not
	if _, err := d.Agent("abcd"); err == nil {
		t.Fatal("it was made")
	}
	if left := numbers(t, d); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	d.limits = someAgent
	if a := take(t, d, "abcd"); a.number != 0 {
		t.Errorf("its number is %d: that of the one that was not made is lost", a.number)
	} else if err := a.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

// Without v1 controllers the limits are those of ID/agent.
func TestAnAgentIsLimitedInTheSandboxsV2Group(t *testing.T) {
	m := newModel(t, "cpu memory pids")
	d := openModel(t, m)
	d.limits = someAgent
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
	dir := filepath.Join(m.root, top, d.namespace, "abcd", "agent")
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
