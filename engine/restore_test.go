// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func TestRollback(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box", Env: map[string]string{"A": "1"}})
	h.exec("box", "echo one > file")
	one := h.snapshot("box", "one")
	h.exec("box", "echo two > file; touch more")
	two := h.snapshot("box", "two")
	back := func(to string) *sandbox.Sandbox {
		t.Helper()
		got, err := h.engine.Rollback(t.Context(), alice, "box", to)
		if err != nil {
			t.Fatalf("to %s: %v", to, err)
		}
		return got
	}
	t.Run("OfARunningSandboxKeepsAllButTheDisk", func(t *testing.T) {
		got := back("one")
		if got.ID != s.ID || got.Key != "box" || got.State != sandbox.Running || got.Env["A"] != "1" || got.Limits != s.Limits ||
			got.Parent != one.ID || got.Restore != "" || got.StopCause != "" || !got.StoppedAt.IsZero() || !got.StartedAt.After(s.StartedAt) {
			t.Errorf("got %+v", got)
		}
		if got := h.reads("box", "file more"); got != "one\n" {
			t.Errorf("the file: %q", got)
		}
		evs := h.events(s.ID)
		ev := evs[len(evs)-2]
		if ev.Type != sandbox.EventRestored || ev.Cause != sandbox.CauseRestore || ev.Actor != "alice" || !strings.Contains(ev.Detail, string(one.ID)) || !strings.Contains(ev.Detail, "one") {
			t.Errorf("the event: %+v", ev)
		}
		h.exec("box", "echo three > file")
		back("one")
		if got := h.reads("box", "file"); got != "one\n" {
			t.Errorf("a second time, the file: %q", got)
		}
	})
	t.Run("GoesForwardAsWell", func(t *testing.T) {
		if got := back(string(two.ID)); got.Parent != two.ID {
			t.Errorf("got %+v", got)
		}
		if got := h.reads("box", "file"); got != "two\n" {
			t.Errorf("the file: %q", got)
		}
	})
	t.Run("OfAStoppedSandboxLeavesItStopped", func(t *testing.T) {
		before, err := h.engine.Stop(t.Context(), alice, "box")
		if err != nil {
			t.Fatal(err)
		}
		got := back("one")
		if got.State != sandbox.Stopped || got.StopCause != sandbox.CauseUser || got.StopDetail != before.StopDetail || !got.StoppedAt.Equal(before.StoppedAt) || got.Parent != one.ID {
			t.Errorf("got %+v", got)
		}
		_, err = h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "true"}, nil)
		wantCode(t, err, fault.State)
		if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		if got := h.reads("box", "file"); got != "one\n" {
			t.Errorf("the file: %q", got)
		}
	})
	t.Run("OfAPausedSandboxRunsIt", func(t *testing.T) {
		if _, err := h.engine.Pause(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		if got := back("two"); got.State != sandbox.Running {
			t.Errorf("got %+v", got)
		}
		if got := h.reads("box", "file"); got != "two\n" {
			t.Errorf("the file: %q", got)
		}
	})
	t.Run("ToTheImageIsAFreshDisk", func(t *testing.T) {
		for _, to := range []string{"base", "fresh"} {
			h.exec("box", "echo x > file")
			if got := back(to); got.Parent != "" {
				t.Errorf("got %+v", got)
			}
			if got := h.exec("box", "ls -A"); string(got.Stdout) != "" {
				t.Errorf("the workspace: %q", got.Stdout)
			}
		}
		h.exec("box", "echo x > file")
		got, err := h.engine.Reset(t.Context(), alice, "box")
		if err != nil || got.ID != s.ID || got.State != sandbox.Running || got.Parent != "" {
			t.Errorf("got %+v, %v", got, err)
		}
		if got := h.exec("box", "ls -A"); string(got.Stdout) != "" {
			t.Errorf("the workspace: %q", got.Stdout)
		}
	})
	t.Run("ToASnapshotOfAnotherSandbox", func(t *testing.T) {
		other := h.create(engine.CreateRequest{Key: "other"})
		if got, err := h.engine.Rollback(t.Context(), alice, "other", string(one.ID)); err != nil || got.ID != other.ID || got.Parent != one.ID {
			t.Errorf("got %+v, %v", got, err)
		}
		if got := h.reads("other", "file"); got != "one\n" {
			t.Errorf("the file: %q", got)
		}
		h.create(engine.CreateRequest{Key: "node", Image: "node"})
		_, err := h.engine.Rollback(t.Context(), alice, "node", string(one.ID))
		wantCode(t, err, fault.Invalid)
		if m := fault.As(err).Message; !strings.Contains(m, "python") || !strings.Contains(m, "node") {
			t.Errorf("message: %q", m)
		}
	})
	t.Run("ToNowhereIsRefused", func(t *testing.T) {
		for to, want := range map[string]fault.Code{"": fault.Invalid, "now": fault.Invalid, "missing": fault.NotFound, string(sandbox.NewID()): fault.NotFound} {
			_, err := h.engine.Rollback(t.Context(), alice, "box", to)
			wantCode(t, err, want)
		}
		h.exec("box", "true")
	})
	h.settledKept()
}

// Whatever ran is told what became of it.
func TestARollbackEndsWhatRuns(t *testing.T) {
	needs(t, "python3")
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	h.snapshot("box", "x")
	h.cell("box", code.Request{Code: "x = 1"})
	if _, err := h.code.ShellExec(t.Context(), alice, "box", "sh", engine.ExecRequest{Shell: "y=1"}, nil); err != nil {
		t.Fatal(err)
	}
	rec, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "sleep 600"})
	if err != nil {
		t.Fatal(err)
	}
	began := make(chan struct{})
	ended := make(chan engine.ExecResult, 1)
	go func() {
		res, err := h.engine.Exec(context.Background(), alice, "box", engine.ExecRequest{Shell: "echo; sleep 600"},
			func(sandbox.Frame) error { close(began); return nil })
		if err != nil {
			t.Error("the command:", err)
		}
		ended <- res
	}()
	<-began
	if _, err := h.engine.Rollback(t.Context(), alice, "box", "x"); err != nil {
		t.Fatal(err)
	}
	if res := <-ended; res.ExitCode != 137 || res.Cause != sandbox.CauseRestore || !strings.Contains(res.CauseDetail, "rolled back") {
		t.Errorf("the command: %+v", res)
	}
	h.await("the ends of what ran", func() bool {
		for _, ev := range h.events(s.ID) {
			if !ev.Done {
				return false
			}
		}
		return true
	})
	n := 0
	for _, ev := range h.events(s.ID) {
		if (ev.Type == sandbox.EventExec || ev.Type == sandbox.EventContext) && ev.Cause == sandbox.CauseRestore {
			n++
		}
	}
	if n != 4 { // the command, the process, the kernel, the shell's bash
		t.Errorf("%d events say that a rollback ended what ran, want 4: %+v", n, h.events(s.ID))
	}
	if got, err := h.engine.Process(t.Context(), alice, "box", rec.ID); err != nil || got.Result == nil || got.Result.Cause != sandbox.CauseRestore {
		t.Errorf("the process: %+v, %+v, %v", got, got.Result, err)
	}
	res := h.cell("box", code.Request{Code: "'x' in globals()"})
	if value(res) != "False" || !strings.Contains(res.Restarted, "rolled back") {
		t.Errorf("the next cell: %+v", res)
	}
	sh, err := h.code.ShellExec(t.Context(), alice, "box", "sh", engine.ExecRequest{Shell: "echo [$y]"}, nil)
	if err != nil || string(sh.Stdout) != "[]\n" || !strings.Contains(sh.Shell.Restarted, "rolled back") {
		t.Errorf("the shell's next command: %+v, %v", sh, err)
	}
}

func TestARollbackThatFails(t *testing.T) {
	begin := func(t *testing.T) (*house, *sandbox.Sandbox, *sandbox.Snapshot) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		h.exec("box", "echo one > file")
		snap := h.snapshot("box", "x")
		h.exec("box", "echo two > file")
		return h, s, snap
	}
	back := func(t *testing.T, h *house) error {
		_, err := h.engine.Rollback(t.Context(), alice, "box", "x")
		h.faulty.set(nil, nil)
		return err
	}
	t.Run("AtTheExchangeLeavesTheOldDisk", func(t *testing.T) {
		h, s, snap := begin(t)
		h.faulty.set(failing("rollback"), nil)
		wantCode(t, back(t, h), fault.Unavailable)
		got := h.get(s.ID)
		if got.State != sandbox.Stopped || got.StopCause != sandbox.CauseRestore || got.Restore != "" || got.Parent != snap.ID || !strings.Contains(got.StopDetail, "rollback does not work now") {
			t.Errorf("got %+v", got)
		}
		if got := h.reads("box", "file"); got != "two\n" { // the call starts it
			t.Errorf("the file: %q", got)
		}
	})
	t.Run("AtTheStartLeavesTheNewDisk", func(t *testing.T) {
		for _, when := range []string{"before", "after"} {
			h, s, snap := begin(t)
			if when == "before" {
				h.faulty.set(failing("start"), nil)
			} else {
				h.faulty.set(nil, failing("start"))
			}
			wantCode(t, back(t, h), fault.Unavailable)
			got := h.get(s.ID)
			if got.State != sandbox.Stopped || got.StopCause != sandbox.CauseRestore || got.Restore != "" || got.Parent != snap.ID || !strings.Contains(got.StopDetail, "start does not work now") {
				t.Errorf("%s: got %+v", when, got)
			}
			if got := h.reads("box", "file"); got != "one\n" {
				t.Errorf("%s: the file: %q", when, got)
			}
			evs := types(h.events(s.ID))
			if n := len(evs); evs[n-4] != sandbox.EventRestored || evs[n-3] != sandbox.EventFailed || evs[n-2] != sandbox.EventStarted {
				t.Errorf("%s: events: %v", when, evs)
			}
		}
	})
	t.Run("AtTheStopIsFinishedByTheNextVerb", func(t *testing.T) {
		h, s, snap := begin(t)
		h.faulty.set(failing("stop"), nil)
		wantCode(t, back(t, h), fault.Unavailable)
		if got := h.get(s.ID); got.State != sandbox.Restoring || got.Restore != snap.ID {
			t.Errorf("got %+v", got)
		}
		if got := h.reads("box", "file"); got != "one\n" {
			t.Errorf("the file: %q", got)
		}
	})
	t.Run("InTheStoreDoesNothingOrAll", func(t *testing.T) {
		for n := range 3 {
			var st *stubborn
			h := open(t, t.TempDir(), func(o *engine.Options) { st = &stubborn{Store: o.Store}; o.Store = st })
			s := h.create(engine.CreateRequest{Key: "box"})
			h.exec("box", "echo one > file")
			h.snapshot("box", "x")
			h.exec("box", "echo two > file")
			h.recorded()
			st.after(n)
			_, err := h.engine.Rollback(t.Context(), alice, "box", "x")
			st.heal()
			want := "two\n"
			if n > 0 {
				want = "one\n"
			}
			if (err == nil) != (n == 2) {
				t.Errorf("%d commits: %v", n, err)
			}
			if got := h.reads("box", "file"); got != want {
				t.Errorf("%d commits: the file: %q", n, got)
			}
			if got := h.get(s.ID); got.State != sandbox.Running || got.Restore != "" {
				t.Errorf("%d commits: got %+v", n, got)
			}
			h.restart()
			h.whole()
			h.settledKept()
		}
	})
	t.Run("KeepsTheSnapshotThatItIsToBecome", func(t *testing.T) {
		h, s, snap := begin(t)
		h.faulty.set(failing("stop"), nil)
		_, err := h.engine.Rollback(t.Context(), alice, "box", "x")
		wantCode(t, err, fault.Unavailable)
		h.restart(func(o *engine.Options) { h.faulty.set(failing("rollback"), nil) })
		if got := h.get(s.ID); got.State != sandbox.Restoring {
			t.Fatalf("got %+v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), soonEnough)
		defer cancel()
		if err := h.engine.DeleteSnapshot(ctx, alice, "", string(snap.ID)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		h.faulty.set(nil, nil)
		if got := h.reads("box", "file"); got != "one\n" {
			t.Errorf("the file: %q", got)
		}
		h.await("the deletion, which had to wait", func() bool { snaps, _ := h.keptRecords(); return len(snaps) == 0 })
	})
}

// What ran when the server was killed in a rollback was ended by that.
func TestARollbackThatIsCutOffTellsWhatRan(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	h.snapshot("box", "x")
	rec, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "sleep 600"})
	if err != nil {
		t.Fatal(err)
	}
	h.faulty.set(failing("stop"), nil)
	_, err = h.engine.Rollback(t.Context(), alice, "box", "x")
	wantCode(t, err, fault.Unavailable)
	h.restart()
	if got := h.get(s.ID); got.State != sandbox.Stopped || got.StopCause != sandbox.CauseRestore {
		t.Errorf("got %+v", got)
	}
	if got, err := h.engine.Process(t.Context(), alice, "box", rec.ID); err != nil || got.Result == nil || got.Result.Cause != sandbox.CauseRestore {
		t.Errorf("the process: %+v, %v", got, err)
	}
}

// A rollback that a crash cut off and that cannot be finished leaves a sandbox as it was
// found: stopped by its caller, for the reason that the caller had.
func TestARollbackThatIsCutOffForGoodTellsWhoStoppedIt(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	before := h.get(s.ID)
	h.end()
	err := h.store.Update(t.Context(), func(tx store.Tx) error {
		s, err := tx.Sandboxes().Get(s.ID)
		if err != nil {
			return err
		}
		s.State, s.Restore = sandbox.Restoring, sandbox.NewID() // a snapshot that is gone
		return tx.Sandboxes().Update(s)
	})
	if err != nil {
		t.Fatal(err)
	}
	h.serve()
	got := h.get(s.ID)
	if got.State != sandbox.Stopped || got.Restore != "" || got.StopCause != before.StopCause || got.StopDetail != before.StopDetail {
		t.Errorf("got %+v, want it stopped for %s: %s", got, before.StopCause, before.StopDetail)
	}
}

// A sandbox whose disk is lost gets another from its snapshot.
func TestARollbackOfALostDisk(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	h.exec("box", "echo one > file")
	h.snapshot("box", "x")
	if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	h.loseDisk(s.ID)
	_, err := h.engine.Start(t.Context(), alice, "box")
	wantCode(t, err, fault.State)
	if got := h.get(s.ID); got.State != sandbox.Failed {
		t.Fatalf("got %+v", got)
	}
	got, err := h.engine.Rollback(t.Context(), alice, "box", "x")
	if err != nil || got.State != sandbox.Running || got.ID != s.ID {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got := h.reads("box", "file"); got != "one\n" {
		t.Errorf("the file: %q", got)
	}
}
