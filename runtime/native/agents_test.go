// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	sandruntime "sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// agentGroup finds the group that has the limit of a controller of a process 1: its directory
// on the host, and the names of the files of that version of cgroups.
func agentGroup(t testing.TB, pid int, controller string) (dir string, v2 bool) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	unified := ""
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if parts[1] == controller {
			for m := range strings.Lines(string(mounts)) {
				left, right, _ := strings.Cut(m, " - ")
				l, r := strings.Fields(left), strings.Fields(right)
				if len(l) > 4 && len(r) > 2 && r[0] == "cgroup" && strings.Contains(","+r[2]+",", ","+controller+",") {
					return filepath.Join(l[4], parts[2]), false
				}
			}
		}
		if parts[0] == "0" {
			for m := range strings.Lines(string(mounts)) {
				left, right, _ := strings.Cut(m, " - ")
				if strings.HasPrefix(right, "cgroup2 ") {
					unified = filepath.Join(strings.Fields(left)[4], parts[2])
				}
			}
		}
	}
	return unified, true
}

func numberIn(t testing.TB, dir, file string) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
	if err != nil {
		t.Fatalf("%s of %s: %v", file, dir, err)
	}
	return n
}

// limited checks that a process 1 is in groups with the limits of an agent, and returns that of
// its memory.
func limited(t testing.TB, dir string, i sandruntime.Instance) string {
	t.Helper()
	pid := processOf(t, dir, i)
	for _, c := range []struct {
		controller, v1, v2 string
		most               int64
	}{
		{"cpu", "cpu.cfs_quota_us", "cpu.max", 100_000},
		{"memory", "memory.limit_in_bytes", "memory.max", 384 << 20},
		{"pids", "pids.max", "pids.max", 5000},
	} {
		group, v2 := agentGroup(t, pid, c.controller)
		file := c.v1
		if v2 {
			file = c.v2
		}
		if n := numberIn(t, group, file); n <= 0 || n > c.most {
			t.Errorf("process 1 of %s: %s of %s is %d, want up to %d", i.Handle().ID, file, group, n, c.most)
		}
	}
	group, _ := agentGroup(t, pid, "memory")
	return group
}

// left returns a wait for the end of a group; another one may have its name by then.
func left(t testing.TB, path string) (wait func()) {
	t.Helper()
	was, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
			if is, err := os.Stat(path); err != nil || !os.SameFile(is, was) {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("%s is left behind", path)
				return
			}
		}
	}
}

func TestEachAgentHasLimitsOfItsOwnInEachLife(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	d := open(t, dir, "")
	t.Cleanup(func() { _ = d.Close() })
	i := lasting(t, d)
	spec := boxSpec(t)
	spec.ID = i.Handle().ID
	groups := map[string]string{}
	see := func(life string, i sandruntime.Instance) string {
		t.Helper()
		group := limited(t, dir, i)
		for other, g := range groups {
			if g == group {
				t.Errorf("%s: the group is that of %s: %s", life, other, group)
			}
		}
		return group
	}
	groups["the first"] = see("create", i)

	forked := boxSpec(t)
	copied, err := d.Fork(t.Context(), i.Handle().ID, forked, func() {})
	if err != nil {
		t.Fatal(err)
	}
	groups["the fork"] = see("fork", copied)
	gone := left(t, groups["the fork"])
	if err := copied.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone()
	delete(groups, "the fork")

	last := groups["the first"]
	gone = left(t, last)
	was, err := os.Stat(last)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Restore(t.Context(), spec, ""); err != nil {
		t.Fatal(err)
	}
	restored := limited(t, dir, i)
	if _, v2 := agentGroup(t, processOf(t, dir, i), "memory"); !v2 { // there the sandbox's groups stay
		if is, err := os.Stat(restored); err != nil || os.SameFile(is, was) { // one made after it may have its name
			t.Errorf("the process 1 after a rollback is in the group of the last, %s, or in none: %v", last, err)
		}
		gone()
	}

	gone = left(t, restored)
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	gone()
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	group := limited(t, dir, i)

	// The next server finds it in the same group, and frees that.
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(t, dir, "")
	found, err := d.Open(t.Context(), i.Handle())
	if err != nil {
		t.Fatal(err)
	}
	if again := limited(t, dir, found); again != group {
		t.Errorf("found in %s, was in %s", again, group)
	}
	sh(t, found, "", "true")
	gone = left(t, group)
	if err := found.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone()
}

// flood opens calls to an agent that never say all they are about, until the agent takes no
// more or has more than it may have.
func flood(i sandruntime.Instance) {
	const calls = 1000
	call := wire.Append(wire.AppendHello(nil), wire.Call, make([]byte, wire.MaxJSON))
	call = call[:len(call)-1]
	var all sync.WaitGroup
	conns := make(chan net.Conn, calls)
	for range 16 {
		all.Go(func() {
			for range calls / 16 {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				conn, err := i.Dial(ctx)
				cancel()
				if err != nil {
					return
				}
				conns <- conn
				_ = conn.SetWriteDeadline(time.Now().Add(20 * time.Second))
				if _, err := conn.Write(call); err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	close(conns)
	for conn := range conns {
		_ = conn.Close()
	}
}

func TestAnAgentThatTakesTooMuchMemoryEndsItsOwnSandboxAlone(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	d := open(t, dir, "")
	attacked, other := lasting(t, d), lasting(t, d)
	t.Cleanup(func() {
		for _, i := range []*native.Instance{attacked, other} {
			if err := i.Remove(context.Background()); err != nil {
				t.Error(err)
			}
		}
		_ = d.Close()
	})
	before := processOf(t, dir, other)
	for _, how := range []string{"by the server that started it", "by another server"} {
		if strings.HasPrefix(how, "by another") {
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			d = open(t, dir, "")
			for _, i := range []**native.Instance{&attacked, &other} {
				found, err := d.Open(t.Context(), (*i).Handle())
				if err != nil {
					t.Fatal(err)
				}
				*i = found.(*native.Instance)
			}
		}
		flood(attacked)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		exit, err := attacked.Wait(ctx)
		cancel()
		if err != nil {
			t.Fatalf("watched %s: an agent that was sent 1 GB is up: %v", how, err)
		}
		if exit.Cause != sandbox.CauseOOM || !strings.Contains(exit.Detail, "384 MiB") {
			t.Errorf("watched %s: it ended with %+v", how, exit)
		}
		if out := sh(t, other, "", "echo up"); out != "up\n" || processOf(t, dir, other) != before {
			t.Errorf("the other sandbox says %q, and its process 1 is %d and was %d", out, processOf(t, dir, other), before)
		}
		spec := boxSpec(t)
		spec.ID = attacked.Handle().ID
		if err := attacked.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if out := sh(t, attacked, "", "echo again"); out != "again\n" {
			t.Errorf("started again it says %q", out)
		}
	}
}

// What only reads is bounded in the agent itself, so that it does not come to that: a token
// that may read ends nothing.
func TestCallersThatOnlyReadDoNotEndASandbox(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	d := open(t, dir, "")
	t.Cleanup(func() { _ = d.Close() })
	i := box(t, d)
	pid := processOf(t, dir, i)
	sh(t, i, "", `mkdir many; cd many; python3 -c 'for n in range(20000): open("%0240d" % n, "w").close()'; head -c 64M /dev/zero > ../big`)

	var refused, held atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var readers, all sync.WaitGroup
	const files = 1400
	readers.Add(files)
	for range files { // none reads on
		all.Go(func() {
			_, r, err := agent.NewClient(i.Dial).ReadFile(ctx, "big", sandbox.ReadFileOptions{})
			if err == nil {
				held.Add(1)
				defer func() { _ = r.Close() }()
			} else if fault.Is(err, fault.Exhausted) {
				refused.Add(1)
			}
			readers.Done()
			<-ctx.Done()
		})
	}
	readers.Wait()
	if held.Load() == 0 || held.Load()+refused.Load() != files || refused.Load() == 0 {
		t.Errorf("of %d reads that do not go on %d are open and %d were refused", files, held.Load(), refused.Load())
	}
	var lists sync.WaitGroup
	for range 20 {
		lists.Go(func() {
			if _, err := agent.NewClient(i.Dial).EachFile(ctx, "many", sandbox.ListFilesOptions{Limit: 100_000}, func(sandbox.FileInfo) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	lists.Wait()
	cancel()
	all.Wait()
	if out := sh(t, i, "", "echo up"); out != "up\n" || processOf(t, dir, i) != pid {
		t.Errorf("it says %q", out)
	}
	if out := sh(t, i, "", "ls many | wc -l"); out != "20000\n" {
		t.Errorf("it has %q files", out)
	}
	group, v2 := agentGroup(t, pid, "memory")
	if !v2 {
		t.Logf("the agent had %d MiB at most", numberIn(t, group, "memory.max_usage_in_bytes")>>20)
	}
}
