// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup/cgroupfs"
)

var someLimits = Limits{CPU: 1.5, MemoryBytes: 512 << 20, PIDs: 256}

func openModel(t *testing.T, m *model) *Driver {
	t.Helper()
	d, err := open(Options{Namespace: "test0001", Mountinfo: m.mountinfo(t)}, m)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func wantCode(t *testing.T, err error, want fault.Code) *fault.Error {
	t.Helper()
	if got := fault.Of(err); got != want {
		t.Fatalf("got code %q of %v, want %q", got, err, want)
	}
	return fault.As(err)
}

func TestPureV2(t *testing.T) {
	const ns = "sandpit/test0001"
	all := "cpu memory pids"
	parents := map[string]string{
		"cgroup.subtree_control":         all,
		"sandpit":                        "",
		"sandpit/cgroup.subtree_control": all,
		ns:                               "",
		ns + "/cgroup.subtree_control":   all,
		ns + "/cgroup.max.depth":         "3",
	}
	with := func(more map[string]string) map[string]string {
		out := map[string]string{}
		for _, m := range []map[string]string{parents, more} {
			for k, v := range m {
				out[k] = v
			}
		}
		return out
	}
	created := map[string]string{
		ns + "/abcd":                            "",
		ns + "/abcd/agent":                      "",
		ns + "/abcd/cmd":                        "",
		ns + "/abcd/cmd/cgroup.max.descendants": "4096",
	}
	activated := with(created)
	for k, v := range map[string]string{
		"/abcd/cgroup.subtree_control": all,
		"/abcd/cmd/cpu.max":            "150000 100000",
		"/abcd/cmd/memory.max":         "536870912",
		"/abcd/cmd/memory.swap.max":    "0",
		"/abcd/cmd/pids.max":           "256",
	} {
		activated[ns+k] = v
	}

	t.Run("OneLifeFromCreateToRemove", func(t *testing.T) {
		m := newModel(t, "cpuset cpu io memory pids")
		d := openModel(t, m)
		want := map[Feature]int{CPU: 2, Memory: 2, Swap: 2, Sockets: 2, PIDs: 2, Kill: 2, Freeze: 2}
		if diff := cmp.Diff(d.Info().Version, want); diff != "" || d.Info().Layout != "v2" || len(d.Info().Missing) != 0 {
			t.Errorf("info %+v (-got +want):\n%s", d.Info(), diff)
		}
		if diff := cmp.Diff(m.dump(), parents); diff != "" {
			t.Errorf("after Open (-got +want):\n%s", diff)
		}
		g, err := d.Create("abcd", someLimits, 231072)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m.dump(), with(map[string]string{ns + "/abcd": ""})); diff != "" {
			t.Errorf("after Create (-got +want):\n%s", diff)
		}
		if err := g.Prepare(); err != nil {
			t.Fatal(err)
		}
		f, err := g.MakeAgent()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m.dump(), with(created)); diff != "" {
			t.Errorf("after Prepare (-got +want):\n%s", diff)
		}
		// Exactly this and nothing else is the sandbox's.
		owned := []string{ns + "/abcd/cgroup.procs:231072", ns + "/abcd/cmd/cgroup.procs:231072", ns + "/abcd/cmd:231072"}
		if diff := cmp.Diff(m.owned, owned); diff != "" {
			t.Errorf("delegated (-got +want):\n%s", diff)
		}

		dir := filepath.Join(m.root, ns, "abcd")
		m.put(dir, "cgroup.procs", "77\n")
		wantCode(t, g.Activate(), fault.State)
		if _, err := f.WriteString("77\n"); err != nil {
			t.Fatal(err)
		}
		f.Close()
		m.put(dir, "cgroup.procs", "")
		if got := m.get(filepath.Join(dir, "agent"), "cgroup.procs"); got != "77" {
			t.Errorf("agent/cgroup.procs: got %q, want 77", got)
		}
		for range 2 { // twice is fine
			if err := g.Activate(); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(m.dump(), activated); diff != "" {
			t.Errorf("after Activate (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(m.owned, owned); diff != "" {
			t.Errorf("delegated after Activate (-got +want):\n%s", diff)
		}
		if files, err := g.JoinFiles(); err != nil || len(files) != 0 {
			t.Errorf("JoinFiles: got %v, %v, want none", files, err)
		}
		got, err := g.Limits()
		if diff := cmp.Diff(got, someLimits); err != nil || diff != "" {
			t.Errorf("Limits: %v (-got +want):\n%s", err, diff)
		}
		if err := g.SetLimits(Limits{CPU: 0.25, PIDs: 9}); err != nil {
			t.Fatal(err)
		}
		changed := with(activated)
		changed[ns+"/abcd/cmd/cpu.max"] = "25000 100000"
		changed[ns+"/abcd/cmd/pids.max"] = "9"
		delete(changed, ns+"/abcd/cmd/memory.max")
		delete(changed, ns+"/abcd/cmd/memory.swap.max")
		if diff := cmp.Diff(m.dump(), changed); diff != "" {
			t.Errorf("after SetLimits (-got +want):\n%s", diff)
		}
		if u, err := g.Usage(); err != nil || u != (Usage{MemoryBytes: 4096}) {
			t.Errorf("Usage: got %+v, %v", u, err)
		}
		for _, open := range []func() (*os.File, error){g.OOMFile, g.PIDsFile, g.Dir} {
			f, err := open()
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
		}

		// A group that the agent left behind goes too.
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd, err := cgroupfs.Open(d.tree.dir, "abcd/cmd", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer cmd.Close()
		if err := m.Mkdir(int(cmd.Fd()), "p17"); err != nil {
			t.Fatal(err)
		}
		if err := g.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m.dump(), parents); diff != "" {
			t.Errorf("after Remove (-got +want):\n%s", diff)
		}
	})

	t.Run("RemoveWaitsForProcessesAndDoesNotKill", func(t *testing.T) {
		m := newModel(t, all)
		d := openModel(t, m)
		g, err := d.Create("abcd", someLimits, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Prepare(); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(m.root, ns, "abcd")
		m.put(filepath.Join(dir, "cmd"), "cgroup.procs", "77\n")
		m.put(dir, "cgroup.events", "populated 1\nfrozen 0\n")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantCode(t, g.Remove(ctx), fault.State)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = openModel(t, m)
		if ids, err := d.List(); err != nil || !slices.Equal(ids, []string{"abcd"}) {
			t.Fatalf("List: got %v, %v", ids, err)
		}
		if g, err = d.Open("abcd"); err != nil {
			t.Fatal(err)
		}
		wantCode(t, g.Prepare(), fault.State) // it does not know the limits
		wantCode(t, g.Activate(), fault.State)
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		m.put(dir, "cgroup.events", "populated 0\nfrozen 0\n")
		for range 2 {
			if err := g.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := g.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(m.dump(), parents); diff != "" {
			t.Errorf("after Remove (-got +want):\n%s", diff)
		}
		_, err = d.Open("abcd")
		wantCode(t, err, fault.NotFound)
		for range 2 {
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(m.dump(), map[string]string{"cgroup.subtree_control": all}); diff != "" {
			t.Errorf("after Close (-got +want):\n%s", diff)
		}
	})

	testPureV2Refuses(t, ns, all, parents)
}

// testPureV2Refuses tests what fails halfway, or is refused; parents are the files of a model
// with all controllers, and no group.
func testPureV2Refuses(t *testing.T, ns, all string, parents map[string]string) {
	t.Run("WhatFailsHalfWayIsRemovedWhole", func(t *testing.T) {
		m := newModel(t, all)
		d := openModel(t, m)
		for n := 0; ; n++ {
			m.fuse = n
			g, err := d.Create("abcd", someLimits, 0)
			if err == nil {
				err = g.Prepare()
			}
			m.fuse = -1
			if g != nil {
				if err := g.Remove(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(m.dump(), parents); diff != "" {
				t.Fatalf("after step %d (-got +want):\n%s", n, diff)
			}
			if err == nil {
				if n != 6 {
					t.Errorf("it took %d steps, want 6", n)
				}
				break
			}
			wantCode(t, err, fault.Exhausted)
		}
	})

	t.Run("CreateLeavesWhatExistsAlone", func(t *testing.T) {
		m := newModel(t, all)
		d := openModel(t, m)
		if _, err := d.Create("abcd", someLimits, 0); err != nil {
			t.Fatal(err)
		}
		before := m.dump()
		_, err := d.Create("abcd", Limits{}, 0)
		wantCode(t, err, fault.Exists)
		if diff := cmp.Diff(m.dump(), before); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
	})

	t.Run("FreezeThatDoesNotComeIsUndone", func(t *testing.T) {
		m := newModel(t, all)
		d := openModel(t, m)
		g, err := d.Create("abcd", Limits{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Freeze(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := g.Thaw(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.stuck = true
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantCode(t, g.Freeze(ctx), fault.Canceled)
		if got := m.get(filepath.Join(m.root, ns, "abcd"), "cgroup.freeze"); got != "0" {
			t.Errorf("cgroup.freeze is %s, want 0", got)
		}
	})

	t.Run("SetLimitsThatFailsPutsTheOldOnesBack", func(t *testing.T) {
		m := newModel(t, all)
		d := openModel(t, m)
		g, err := d.Create("abcd", someLimits, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(g.Prepare(), g.Activate()); err != nil {
			t.Fatal(err)
		}
		before := m.dump()
		// The third write, memory.max, does not pass: the model's fuse then
		// blows once only.
		m2 := &onceFailing{model: m, at: 2}
		d.kernel = m2
		if err := g.SetLimits(Limits{CPU: 1, MemoryBytes: 2 << 20, PIDs: 5}); err == nil {
			t.Fatal("want an error")
		}
		if diff := cmp.Diff(m.dump(), before); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
	})

	t.Run("MemoryThatIsInUseIsNotTakenByALimit", func(t *testing.T) {
		m := newModel(t, all)
		d := openModel(t, m)
		g, err := d.Create("abcd", Limits{CPU: 1, MemoryBytes: 64 << 20, PIDs: 8}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(g.Prepare(), g.Activate()); err != nil {
			t.Fatal(err)
		}
		m.put(filepath.Join(m.root, ns, "abcd/cmd"), "memory.current", strconv.Itoa(32<<20))
		m.needed = 20 << 20
		before := m.dump()
		wantCode(t, g.SetLimits(Limits{CPU: 2, MemoryBytes: 10 << 20, PIDs: 9}), fault.Conflict)
		if diff := cmp.Diff(m.dump(), before); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
		want := Limits{CPU: 2, MemoryBytes: 24 << 20, PIDs: 9} // the rest is cache, and goes
		if err := g.SetLimits(want); err != nil {
			t.Fatal(err)
		}
		if got, err := g.Limits(); err != nil || got != want {
			t.Errorf("got %+v, %v", got, err)
		}
	})

	t.Run("WithoutAControllerItsLimitIsRefused", func(t *testing.T) {
		m := newModel(t, "cpu pids")
		d := openModel(t, m)
		e := wantCode(t, d.Info().Err(Memory), fault.Unsupported)
		if e.Remedy == "" {
			t.Error("no remedy")
		}
		before := m.dump()
		_, err := d.Create("abcd", Limits{MemoryBytes: 2 << 20}, 0)
		wantCode(t, err, fault.Unsupported)
		if diff := cmp.Diff(m.dump(), before); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
		if _, err := d.Create("abcd", Limits{CPU: 1, PIDs: 4}, 0); err != nil {
			t.Error(err)
		}
	})
}

// onceFailing lets one write fail.
type onceFailing struct {
	*model
	at int
}

func (o *onceFailing) Write(dir int, path string, value []byte) error {
	o.at--
	if o.at == -1 {
		return os.ErrInvalid
	}
	return o.model.Write(dir, path, value)
}

func TestNamesCannotBePaths(t *testing.T) {
	m := newModel(t, "cpu memory pids")
	d := openModel(t, m)
	before := m.dump()
	for _, id := range []string{"", "abc", "..", "../..", "a/bc", "abcd/", "/abcd", "ABCD", "ab.cd", "ab cd", "_agents", "_agent0",
		"agent\x00s", "äöüx", "abcdefghijklmnopqrstuvwxyz0123456", "cmd.", "\nabcd"} {
		_, err := d.Create(id, Limits{}, 0)
		wantCode(t, err, fault.Invalid)
		_, err = d.Open(id)
		wantCode(t, err, fault.Invalid)
		_, err = open(Options{Namespace: id, Mountinfo: m.mountinfo(t)}, m)
		wantCode(t, err, fault.Invalid)
	}
	if diff := cmp.Diff(m.dump(), before); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestLimitsHaveBounds(t *testing.T) {
	m := newModel(t, "cpu memory pids")
	d := openModel(t, m)
	nan := 0.0
	nan /= nan
	for _, l := range []Limits{{CPU: -1}, {CPU: 0.009}, {CPU: 4097}, {CPU: nan}, {MemoryBytes: -1}, {MemoryBytes: 1},
		{MemoryBytes: 1<<60 + 1}, {PIDs: -1}, {PIDs: 1<<22 + 1}} {
		_, err := d.Create("abcd", l, 0)
		e := wantCode(t, err, fault.Invalid)
		if len(e.Fields) != 1 {
			t.Errorf("%+v: got fields %v", l, e.Fields)
		}
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	m := newModel(t, "cpu memory pids")
	d := openModel(t, m)
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "pids.max"), []byte("safe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(other, "pids.max"), filepath.Join(m.root, "sandpit/test0001/link")); err != nil {
		t.Fatal(err)
	}
	if err := (cgroupfs.System{}).Write(d.tree.dir, "link", []byte("9")); err == nil {
		t.Error("a link was followed")
	}
}

func TestWithoutCgroupsEverythingIsRefusedWithARemedy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mountinfo")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := Open(Options{Namespace: "test0001", Mountinfo: path})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Features() {
		if e := wantCode(t, d.Info().Err(f), fault.Unsupported); e.Remedy == "" {
			t.Errorf("%s: no remedy", f)
		}
	}
	g, err := d.Create("abcd", Limits{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, g.Kill(), fault.Unsupported)
	wantCode(t, g.Freeze(t.Context()), fault.Unsupported)
	_, _, err = g.CommandsDir()
	wantCode(t, err, fault.Unsupported)
	_, err = g.OOMFile()
	wantCode(t, err, fault.Unsupported)
	if err := g.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}
