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
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

func after(c sandbox.Checkpoints) *sandbox.Checkpoints { return &c }

// seer is a driver that tells which files a command changed: always the same.
type seer struct {
	*faulty
	files []sandbox.FileChange
}

func (s *seer) Create(ctx context.Context, spec runtime.Spec) (runtime.Instance, error) {
	inst, err := s.faulty.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &seen{inst, s}, nil
}

type seen struct {
	runtime.Instance
	s *seer
}

func (i *seen) Track(context.Context, string) (runtime.Window, error) { return look{i.s}, nil }

type look struct{ s *seer }

func (l look) Close(context.Context) (sandbox.Changes, error) {
	return sandbox.Changes{Files: l.s.files, Total: len(l.s.files), Complete: true}, nil
}

func TestCheckpoints(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box", Checkpoints: after(sandbox.CheckpointsCommand)})
	t.Run("AreThereWithTheAnswer", func(t *testing.T) {
		res := h.exec("box", "echo one > file")
		snap, err := h.engine.Snapshot(t.Context(), alice, "box", string(res.SnapshotID))
		if err != nil || !snap.Auto || snap.Name != "" || snap.CreatedBy != "alice" || !strings.Contains(snap.Detail, res.ProcessID) || !strings.Contains(snap.Detail, "echo one > file") {
			t.Fatalf("got %+v, %v", snap, err)
		}
		h.exec("box", "echo two > file")
		if got, err := h.engine.Rollback(t.Context(), alice, "box", string(res.SnapshotID)); err != nil || got.Parent != snap.ID {
			t.Errorf("got %+v, %v", got, err)
		}
		if got := h.reads("box", "file"); got != "one\n" {
			t.Errorf("the file: %q", got)
		}
	})
	t.Run("ThatFailDoNotFailTheCommand", func(t *testing.T) {
		h.faulty.set(failing("snapshot"), nil)
		res := h.exec("box", "echo three > file")
		h.faulty.set(nil, nil)
		if res.ExitCode != 0 || res.SnapshotID != "" {
			t.Errorf("got %+v", res)
		}
		evs := h.events(s.ID)
		found := false
		for _, ev := range evs {
			found = found || ev.Type == sandbox.EventFailed && !ev.OK && strings.Contains(ev.Detail, res.ProcessID) && strings.Contains(ev.Detail, "snapshot does not work now")
		}
		if !found {
			t.Errorf("no event tells of it: %+v", evs[len(evs)-3:])
		}
		h.keptWhole()
	})
	t.Run("FollowACommandOfAShellAndACell", func(t *testing.T) {
		needs(t, "python3")
		sh, err := h.code.ShellExec(t.Context(), alice, "box", "sh", engine.ExecRequest{Shell: "echo sh > file"}, nil)
		if err != nil || sh.SnapshotID == "" {
			t.Fatalf("got %+v, %v", sh, err)
		}
		cell := h.cell("box", code.Request{Code: "open('file', 'w').write('cell\\n')"})
		if cell.SnapshotID == "" {
			t.Fatalf("got %+v", cell)
		}
		if got := h.holds(string(sh.SnapshotID), "file"); got != "sh\n" {
			t.Errorf("the shell's: %q", got)
		}
		if got := h.holds(string(cell.SnapshotID), "file"); got != "cell\n" {
			t.Errorf("the cell's: %q", got)
		}
	})
	t.Run("FollowACommandThatNobodyWaitedFor", func(t *testing.T) {
		before := len(h.list(snapshot.Query{Sandbox: "box"}))
		res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "echo; echo late > file"}, stopAtFirst)
		if !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		h.await("its checkpoint", func() bool {
			list := h.list(snapshot.Query{Sandbox: "box"})
			return len(list) == before+1 && strings.Contains(list[0].Detail, res.ProcessID)
		})
	})
	t.Run("GoWithTheirSandbox", func(t *testing.T) {
		h.snapshot("box", "named")
		h.remove("box")
		h.settledKept()
		if list := h.list(snapshot.Query{}); len(list) != 1 || list[0].Name != "named" {
			t.Errorf("left: %+v", list)
		}
	})
}

func TestCheckpointsAreTakenOfChangesOnly(t *testing.T) {
	seen := &seer{}
	h := open(t, t.TempDir(), func(o *engine.Options) {
		seen.faulty = o.Runtimes["memory"].(*faulty)
		o.Runtimes["memory"] = seen
	})
	for _, c := range []struct {
		name   string
		when   sandbox.Checkpoints
		change []sandbox.FileChange
		taken  bool
	}{
		{"a change", sandbox.CheckpointsCommand, []sandbox.FileChange{{Path: "x", Action: "created"}}, true},
		{"no change", sandbox.CheckpointsCommand, nil, false},
		{"switched off", sandbox.CheckpointsOff, []sandbox.FileChange{{Path: "x", Action: "created"}}, false},
	} {
		h.create(engine.CreateRequest{Key: c.name, Checkpoints: after(c.when)})
		seen.files = c.change
		if res := h.exec(c.name, "true"); (res.SnapshotID != "") != c.taken {
			t.Errorf("%s: got %+v", c.name, res)
		}
	}
}

func TestCheckpointsArePruned(t *testing.T) {
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box", Checkpoints: after(sandbox.CheckpointsCommand)})
	named := h.snapshot("box", "named")
	var last sandbox.ID
	for range sandbox.KeptCheckpoints + 3 {
		last = h.exec("box", "true").SnapshotID
	}
	h.settledKept()
	list := h.list(snapshot.Query{Sandbox: "box", Limit: 100})
	if len(list) != sandbox.KeptCheckpoints+1 || list[0].ID != last || list[len(list)-1].ID != named.ID {
		t.Errorf("%d are left, the newest %s", len(list), list[0].ID)
	}
}

func TestASandboxThatIsRolledBackGetsNoCheckpointOfTheOldDisk(t *testing.T) {
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box", Checkpoints: after(sandbox.CheckpointsCommand)})
	snap := h.snapshot("box", "x")
	over := make(chan struct{})
	res, err := h.during("box", func() {
		defer close(over)
		if _, err := h.engine.Rollback(t.Context(), alice, "box", "x"); err != nil {
			t.Error(err)
		}
	})
	<-over
	if err != nil || res.Cause != sandbox.CauseRestore || res.SnapshotID != "" {
		t.Errorf("got %+v, %v", res, err)
	}
	wantIDs(t, ids(h.list(snapshot.Query{})), snap.ID)
	wantCode(t, h.engine.DeleteSnapshot(t.Context(), alice, "", string(res.SnapshotID)), fault.NotFound)
}
