// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/linux/cgroup/cgroupfs"
)

func take(t *testing.T, tree *Tree) *Agent {
	t.Helper()
	a, err := tree.Agent()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// locking checks at each removal of an agent's group that no other agent can get its number meanwhile.
type locking struct {
	cgroupfs.System
	t       *testing.T
	tree    *Tree
	removed int
}

func (k *locking) Rmdir(dir int, path string) error {
	if agentNumber(path) >= 0 {
		k.removed++
		if k.tree.agents.mu.TryLock() {
			k.tree.agents.mu.Unlock()
			k.t.Errorf("%s is removed while its number can be given to another agent", path)
		}
	}
	return k.System.Rmdir(dir, path)
}

func TestNoAgentLosesItsGroupsToAnothersBegin(t *testing.T) {
	tree := openHost(t)
	one := take(t, tree)
	n := one.number
	one.CloseFiles()
	tree.agents.mu.Lock()
	tree.agents.left = append(tree.agents.left, n) // as after a server that was killed
	tree.agents.mu.Unlock()
	kernel := &locking{t: t, tree: tree}
	tree.kernel = kernel
	two := take(t, tree)
	tree.kernel = kernel.System
	if kernel.removed == 0 {
		t.Error("the group that was left was not removed")
	}
	if two.number != n {
		t.Errorf("the next agent has the number %d, want %d, which is free again", two.number, n)
	}
	if err := two.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestEachAgentHasGroupsWithTheirLimits(t *testing.T) {
	tree := openHost(t)
	one, two := take(t, tree), take(t, tree)
	if one.path() == two.path() {
		t.Errorf("two agents have the group %s", one.path())
	}
	cmd := within(t, one, "/bin/sleep", "1000")
	group := "/" + cgroupfs.Top + "/" + tree.namespace + "/" + one.path()
	want := map[string]string{"cpu": group, "memory": group, "pids": group}
	if diff := cmp.Diff(v1Paths(t, fmt.Sprintf("/proc/%d/cgroup", cmd.Process.Pid)), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	var got Limits
	if err := tree.Limits(one.path(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, some); diff != "" {
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
	if names := left(t, tree); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestAnAgentThatTheKernelEndsForMemoryIsCounted(t *testing.T) {
	a := take(t, openHost(t))
	hog := func() {
		_ = within(t, a, "/usr/bin/tail", "/dev/zero").Wait()
	}
	count := func(want uint64) {
		t.Helper()
		if n, err := a.OOMKills(); err != nil || n != want {
			t.Errorf("%d were ended for their memory, %v; want %d", n, err, want)
		}
	}
	_ = within(t, a, "/bin/false").Wait()
	count(0)
	for n := range uint64(2) {
		hog()
		count(n + 1)
	}
	if err := a.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAServerFindsTheAgentsOfTheOneBefore(t *testing.T) {
	tree := openHost(t)
	lives, forgotten, ended := take(t, tree), take(t, tree), take(t, tree)
	ended.CloseFiles()
	kept, lost := within(t, lives, "/bin/sleep", "1000"), within(t, forgotten, "/bin/sleep", "1000")
	old := exec.Command("/bin/sleep", "1000") // of a server that had one group for all
	if err := old.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = old.Process.Kill(); _ = old.Wait() })
	for i := range tree.hierarchies {
		path := filepath.Join(tree.hierarchies[i].path, cgroupfs.Top, tree.namespace, "_agents", "cgroup.procs")
		if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strconv.Itoa(old.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(filepath.Dir(path), "../_spare0"), 0o755); err != nil { // of one that made groups ahead
			t.Fatal(err)
		}
	}

	unlock(t, tree)
	next := reopen(t, tree.namespace)
	hierarchies := len(next.hierarchies)
	if names := left(t, next); len(names) != 3*hierarchies {
		t.Errorf("left of the server before: %v, want the groups of those that run", names)
	}
	found, earlier := next.FindAgent(kept.Process.Pid), next.FindAgent(old.Process.Pid)
	if found.path() != lives.path() || earlier.number >= 0 {
		t.Errorf("found in %s and %d, want %s and none", found.path(), earlier.number, lives.path())
	}
	more := take(t, next)
	if p := more.path(); p == lives.path() || p == forgotten.path() {
		t.Errorf("a new one has the group %s of one that runs", p)
	}
	for _, cmd := range []*exec.Cmd{kept, lost, old} {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for _, a := range []*Agent{found, earlier, more} {
		if n, err := a.OOMKills(); err != nil || n != 0 {
			t.Errorf("%d were ended for their memory, %v; want none", n, err)
		}
		if err := a.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		a := take(t, next) // which removes what is left of others
		err := a.Remove(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if names := left(t, next); len(names) == hierarchies { // _agents, which goes with the namespace
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("what nobody found is left behind: %v", names)
		}
	}
}

func TestNothingIsLeftOfAnAgentThatCannotBeMade(t *testing.T) {
	tree := openHost(t)
	tree.agents.limits.PIDs = 1<<22 + 1 // which the kernel refuses, last or not
	if _, err := tree.Agent(); err == nil {
		t.Fatal("it was made")
	}
	if names := left(t, tree); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
	tree.agents.limits = some
	if a := take(t, tree); a.number != 0 {
		t.Errorf("its number is %d: that of the one that was not made is lost", a.number)
	} else if err := a.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}
