// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/fault"
	"sandpit.dev/internal/checktest"
	"sandpit.dev/sandbox"
)

func (h *house) fork(ref string, r engine.ForkRequest) []*sandbox.Sandbox {
	h.t.Helper()
	made, err := h.engine.Fork(h.t.Context(), alice, ref, r)
	if err != nil {
		h.t.Fatalf("Fork %s: %v", ref, err)
	}
	return made
}

func TestFork(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	idle := time.Hour
	s := h.create(engine.CreateRequest{
		Key: "box", Env: map[string]string{"A": "1"}, Metadata: map[string]string{"l": "v"}, Limits: sandbox.Limits{Pids: 99}, IdleTimeout: &idle, TTL: time.Hour,
	})
	h.exec("box", "echo one > file")
	base := h.snapshot("box", "x")
	h.exec("box", "echo two > file")
	rec, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "until [ -e go ]; do sleep 0.02; done; echo over > over"})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("OfARunningSandbox", func(t *testing.T) {
		made := h.fork("box", engine.ForkRequest{Count: 3})
		if len(made) != 3 {
			t.Fatalf("got %d", len(made))
		}
		seen := map[sandbox.ID]bool{s.ID: true}
		for _, f := range made {
			if seen[f.ID] || f.Key != "" || f.State != sandbox.Running || f.ForkedFrom != s.ID || f.Parent != base.ID || f.Project != "default" ||
				f.Image != s.Image || f.ImageDigest != s.ImageDigest || f.Runtime != s.Runtime || f.Limits != s.Limits || f.Clocks != s.Clocks ||
				!maps.Equal(f.Env, s.Env) || !maps.Equal(f.Metadata, s.Metadata) || f.ExecCount != 0 {
				t.Errorf("got %+v", f)
			}
			seen[f.ID] = true
			if got := h.reads(string(f.ID), "file"); got != "two\n" {
				t.Errorf("the file: %q", got)
			}
			if page, err := h.engine.ListProcesses(t.Context(), alice, string(f.ID), process.Query{Running: true}); err != nil || len(page.Items) != 0 {
				t.Errorf("its processes: %+v, %v", page.Items, err)
			}
			evs := h.events(f.ID)
			if got := types(evs); got[0] != sandbox.EventCreated || got[1] != sandbox.EventStarted || !strings.Contains(evs[0].Detail, "forked from "+string(s.ID)) {
				t.Errorf("events: %+v", evs)
			}
			h.exec(string(f.ID), "echo own > file")
		}
		if got := h.reads("box", "file"); got != "two\n" {
			t.Errorf("the parent's file: %q", got)
		}
		if got, err := h.engine.Process(t.Context(), alice, "box", rec.ID); err != nil || got.Result != nil {
			t.Errorf("the parent's process: %+v, %v", got, err)
		}
		if len(h.list(snapshot.Query{})) != 1 {
			t.Errorf("snapshots are left: %v", ids(h.list(snapshot.Query{})))
		}
		h.keptWhole()
		for _, f := range made {
			h.remove(string(f.ID))
		}
	})
	t.Run("FromASnapshotWithAKeyAndLabels", func(t *testing.T) {
		made := h.fork("box", engine.ForkRequest{From: "x", Key: "fork", Metadata: map[string]string{"m": "w"}})
		if f := made[0]; len(made) != 1 || f.Key != "fork" || f.Parent != base.ID || f.ForkedFrom != s.ID || f.Metadata["m"] != "w" || len(f.Metadata) != 1 {
			t.Errorf("got %+v", made)
		}
		if got := h.reads("fork", "file"); got != "one\n" {
			t.Errorf("the file: %q", got)
		}
		_, err := h.engine.Fork(t.Context(), alice, "box", engine.ForkRequest{Key: "fork"})
		wantCode(t, err, fault.Exists)
		h.keptWhole()
		h.remove("fork")
	})
	t.Run("OfAStoppedSandbox", func(t *testing.T) {
		h.exec("box", "touch go")
		if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		made := h.fork("box", engine.ForkRequest{})
		if got := h.reads(string(made[0].ID), "file"); got != "two\n" {
			t.Errorf("the file: %q", got)
		}
		if got := h.get(s.ID); got.State != sandbox.Stopped {
			t.Errorf("the parent is %s", got.State)
		}
		h.keptWhole()
	})
	t.Run("ChecksWhatIsAsked", func(t *testing.T) {
		for _, r := range []engine.ForkRequest{{Count: -1}, {Count: engine.MaxForks + 1}, {Count: 2, Key: "k"}, {From: "base"}, {Key: "a/b"}, {Metadata: map[string]string{"": ""}}} {
			_, err := h.engine.Fork(t.Context(), alice, "box", r)
			wantCode(t, err, fault.Invalid)
		}
		_, err := h.engine.Fork(t.Context(), alice, "box", engine.ForkRequest{From: "missing"})
		wantCode(t, err, fault.NotFound)
		_, err = h.engine.Fork(t.Context(), mary, "box", engine.ForkRequest{})
		wantCode(t, err, fault.NotFound)
		_, err = h.engine.Fork(t.Context(), nobody, "box", engine.ForkRequest{})
		wantCode(t, err, fault.Denied)
	})
}

func TestManyForks(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	h.exec("box", "echo one > file")
	made := h.fork("box", engine.ForkRequest{Count: 30})
	if len(made) != 30 || len(h.instances()) != 31 {
		t.Fatalf("%d forks, %d instances", len(made), len(h.instances()))
	}
	h.whole()
	h.keptWhole()
}

// One that cannot be made takes all of them with it.
func TestAForkThatFails(t *testing.T) {
	t.Parallel()
	fails := func(t *testing.T, what string, arm func(h *house)) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		h.exec("box", "echo one > file")
		h.recorded()
		arm(h)
		_, err := h.engine.Fork(t.Context(), alice, "box", engine.ForkRequest{Count: 10})
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", what, err)
		}
		h.faulty.set(nil, nil)
		if got := h.instances(); len(got) != 1 {
			t.Errorf("%s: instances are left: %v", what, got)
		}
		p, err := h.engine.List(t.Context(), alice, engine.SandboxesRequest{})
		if err != nil || len(p.Items) != 1 {
			t.Errorf("%s: records are left: %+v, %v", what, p.Items, err)
		}
		h.keptWhole()
		if got := h.reads(string(s.ID), "file"); got != "one\n" {
			t.Errorf("%s: the parent's file: %q", what, got)
		}
	}
	var mu sync.Mutex
	nth := func(name string, n int) func(context.Context, string) error {
		return func(_ context.Context, call string) error {
			mu.Lock()
			defer mu.Unlock()
			if call == name {
				if n--; n == 0 {
					return fault.New(fault.Unavailable, "%s does not work now", name)
				}
			}
			return nil
		}
	}
	for _, n := range []int{1, 5, 10} {
		fails(t, fmt.Sprintf("create %d", n), func(h *house) { h.faulty.set(nth("create", n), nil) })
		fails(t, fmt.Sprintf("late create %d", n), func(h *house) { h.faulty.set(nil, nth("create", n)) })
	}
	fails(t, "snapshot", func(h *house) { h.faulty.set(failing("snapshot"), nil) })
	fails(t, "late snapshot", func(h *house) { h.faulty.set(nil, failing("snapshot")) })
}

func TestAForkThatTheStoreRefuses(t *testing.T) {
	t.Parallel()
	for n := range 4 {
		var st *stubborn
		h := open(t, t.TempDir(), func(o *engine.Options) { st = &stubborn{Store: o.Store}; o.Store = st })
		h.create(engine.CreateRequest{Key: "box"})
		st.after(n)
		_, err := h.engine.Fork(t.Context(), alice, "box", engine.ForkRequest{Count: 4})
		st.heal()
		if (err == nil) != (n == 3) { // the third is the outcome
			t.Errorf("%d commits: %v", n, err)
		}
		h.restart()
		h.whole()
		h.keptWhole()
		want := 1
		if n == 3 {
			want = 5
		}
		if got := h.instances(); len(got) != want {
			t.Errorf("%d commits: %d instances, want %d", n, len(got), want)
		}
	}
}

func TestAForkWhoseCallerGoesAwayIsNobodys(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan struct{})
	h.faulty.set(func(_ context.Context, call string) error {
		if call == "create" {
			cancel()
			<-returned
		}
		return nil
	}, nil)
	_, err := h.engine.Fork(ctx, alice, "box", engine.ForkRequest{Count: 3})
	close(returned)
	wantCode(t, err, fault.Canceled)
	h.await("the end of the forks", func() bool { return len(h.instances()) == 1 })
	h.restart()
	h.whole()
	h.keptWhole()
}

func TestCreateFromASnapshot(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box", Image: "node", Env: map[string]string{"A": "1"}, Limits: sandbox.Limits{Pids: 99, MemoryMB: 64}})
	h.exec("box", "echo one > file")
	snap := h.snapshot("box", "x")
	t.Run("TakesWhatTheRequestLeavesOut", func(t *testing.T) {
		got := h.create(engine.CreateRequest{From: "box/x"})
		checktest.Equal(t, "Image", got.Image, "node")
		checktest.Equal(t, "ImageDigest", got.ImageDigest, snap.ImageDigest)
		checktest.Equal(t, "Limits", got.Limits, s.Limits)
		checktest.Equal(t, "Env['A']", got.Env["A"], "1")
		checktest.Equal(t, "Parent", got.Parent, snap.ID)
		checktest.Equal(t, "ForkedFrom", got.ForkedFrom, "")
		if out := h.exec(string(got.ID), "cat file; echo $A $IMAGE"); string(out.Stdout) != "one\n1 node\n" {
			t.Errorf("inside: %q", out.Stdout)
		}
		if ev := h.events(got.ID)[0]; !strings.Contains(ev.Detail, string(snap.ID)) {
			t.Errorf("the event: %+v", ev)
		}
	})
	t.Run("AndNotWhatItNames", func(t *testing.T) {
		got := h.create(engine.CreateRequest{From: string(snap.ID), Image: "node", Env: map[string]string{}, Limits: sandbox.Limits{Pids: 50}, Runtime: "memory"})
		want := s.Limits
		want.Pids = 50
		if got.Limits != want || len(got.Env) != 0 {
			t.Errorf("got %+v", got)
		}
		for _, r := range []engine.CreateRequest{{From: string(snap.ID), Image: "python"}, {From: string(snap.ID), Runtime: "vax"}} {
			_, _, err := h.engine.Create(t.Context(), alice, r)
			wantCode(t, err, fault.Invalid)
		}
		for _, from := range []string{"missing", "box/missing", "x", "now", "base", string(s.ID)} {
			_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{From: from})
			wantCode(t, err, fault.NotFound)
		}
	})
	t.Run("WithAKeyItGivesTheOneThatThereIs", func(t *testing.T) {
		made := h.create(engine.CreateRequest{From: string(snap.ID), Key: "made"})
		again, created, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{From: string(snap.ID), Key: "made"})
		if err != nil {
			t.Fatal(err)
		}
		checktest.Equal(t, "created", created, false)
		checktest.Equal(t, "ID", again.ID, made.ID)
	})
	t.Run("WhoseSandboxIsDeleted", func(t *testing.T) {
		h.remove("box")
		if got := h.holds(string(s.ID)+"/x", "file"); got != "one\n" {
			t.Errorf("the file: %q", got)
		}
	})
	t.Run("ThatFailsLeavesNothing", func(t *testing.T) {
		n := len(h.instances())
		h.faulty.set(nil, failing("create"))
		_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{From: string(snap.ID)})
		wantCode(t, err, fault.Unavailable)
		h.faulty.set(nil, nil)
		if got := h.instances(); len(got) != n {
			t.Errorf("%d instances, %d before", len(got), n)
		}
		if err := h.engine.DeleteSnapshot(t.Context(), alice, "", string(snap.ID)); err != nil {
			t.Errorf("it is held still: %v", err)
		}
	})
}
