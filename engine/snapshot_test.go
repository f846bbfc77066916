// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/internal/checktest"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func TestCreateSnapshot(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box", Env: map[string]string{"A": "1"}, Limits: sandbox.Limits{Pids: 99}})
	var first *sandbox.Snapshot

	t.Run("KeepsTheDiskOfARunningSandbox", func(t *testing.T) {
		h.exec("box", "echo one > file")
		first = h.snapshot("box", "first")
		h.exec("box", "echo two > file")
		if first.Name != "first" || first.Sandbox != s.ID || first.Project != "default" || first.State != sandbox.SnapshotReady || first.Auto ||
			first.Image != "python" || first.ImageDigest != s.ImageDigest || first.Runtime != "memory" || first.Limits != s.Limits ||
			first.Env["A"] != "1" || first.CreatedBy != "alice" || first.CreatedAt.IsZero() || first.Parent != "" || first.SizeBytes <= 0 {
			t.Errorf("got %+v", first)
		}
		if got := h.holds(string(first.ID), "file"); got != "one\n" {
			t.Errorf("it holds %q", got)
		}
		evs := h.events(s.ID)
		i := len(evs) - 1
		for evs[i].Type != sandbox.EventSnapshot {
			i--
		}
		if ev := evs[i]; ev.ProcessID != string(first.ID) || ev.Actor != "alice" || !ev.Done || !ev.OK || !strings.Contains(ev.Detail, string(first.ID)+`, named "first"`) {
			t.Errorf("the event: %+v", ev)
		}
	})
	t.Run("WithALineage", func(t *testing.T) {
		second := h.snapshot("box", "")
		if second.Parent != first.ID || second.Name != "" {
			t.Errorf("the second: %+v", second)
		}
		if got := h.get(s.ID); got.Parent != second.ID {
			t.Errorf("the sandbox descends from %s, not from %s", got.Parent, second.ID)
		}
		made := h.create(engine.CreateRequest{From: string(first.ID)})
		if made.Parent != first.ID {
			t.Errorf("one made of the first descends from %s", made.Parent)
		}
		if third := h.snapshot(string(made.ID), ""); third.Parent != first.ID {
			t.Errorf("its snapshot descends from %s", third.Parent)
		}
		h.remove(string(made.ID))
	})
	t.Run("OfAStoppedSandboxWithoutStartingIt", func(t *testing.T) {
		if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		snap := h.snapshot("box", "stopped")
		if got := h.get(s.ID); got.State != sandbox.Stopped || got.StopCause != sandbox.CauseUser {
			t.Errorf("the sandbox is %s (%s)", got.State, got.StopCause)
		}
		if got := h.holds(string(snap.ID), "file"); got != "two\n" {
			t.Errorf("it holds %q", got)
		}
	})
	t.Run("OfAPausedSandboxWithoutResumingIt", func(t *testing.T) {
		if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		h.exec("box", "echo paused > file")
		if _, err := h.engine.Pause(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		snap := h.snapshot("box", "paused")
		fork := h.fork("box", engine.ForkRequest{})[0]
		if got := h.get(s.ID); got.State != sandbox.Paused || got.StopCause != sandbox.CauseUser {
			t.Errorf("the sandbox is %s (%s)", got.State, got.StopCause)
		}
		if got := h.holds(string(snap.ID), "file"); got != "paused\n" {
			t.Errorf("it holds %q", got)
		}
		if got := h.reads(string(fork.ID), "file"); got != "paused\n" || fork.State != sandbox.Running || fork.Parent != snap.ID {
			t.Errorf("the fork holds %q: %+v", got, fork)
		}
		if got, err := h.engine.Diff(t.Context(), alice, "box", engine.DiffRequest{From: "stopped"}); err != nil || got.Total == 0 {
			t.Errorf("got %+v, %v", got, err)
		}
		if got := h.get(s.ID); got.State != sandbox.Paused {
			t.Errorf("the sandbox is %s", got.State)
		}
	})
	h.settledKept()
}

// One that the store takes the intent of and not the outcome is none, and leaves nothing.
func TestASnapshotThatTheStoreRefuses(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		var st *stubborn
		h := open(t, t.TempDir(), func(o *engine.Options) { st = &stubborn{Store: o.Store}; o.Store = st })
		s := h.create(engine.CreateRequest{Key: "box"})
		old := h.snapshot("box", "x")
		st.after(n)
		_, err := h.engine.CreateSnapshot(t.Context(), alice, "box", engine.SnapshotRequest{Name: "x", Replace: true})
		st.heal()
		if (err == nil) != (n == 2) {
			t.Errorf("%d commits: %v", n, err)
		}
		h.restart()
		h.settledKept()
		list := h.list(snapshot.Query{})
		if len(list) != 1 || list[0].Name != "x" || (list[0].ID == old.ID) != (n < 2) {
			t.Errorf("%d commits: got %+v", n, list)
		}
		if got := h.get(s.ID); got.Parent != list[0].ID {
			t.Errorf("%d commits: the disk descends from %s, want %s", n, got.Parent, list[0].ID)
		}
	}
}

func TestSnapshotNames(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	h.create(engine.CreateRequest{Key: "other"})
	h.exec("box", "echo old > file")
	old := h.snapshot("box", "x")
	take := func(ref string, r engine.SnapshotRequest) (*sandbox.Snapshot, error) {
		return h.engine.CreateSnapshot(t.Context(), alice, ref, r)
	}
	t.Run("AreUniqueInASandbox", func(t *testing.T) {
		_, err := take("box", engine.SnapshotRequest{Name: "x"})
		wantCode(t, err, fault.Exists)
		if r := fault.As(err).Remedy; !strings.Contains(r, "replace") {
			t.Errorf("remedy: %q", r)
		}
		if _, err := take("other", engine.SnapshotRequest{Name: "x"}); err != nil {
			t.Errorf("in another sandbox: %v", err)
		}
	})
	t.Run("CanBeGivenAnew", func(t *testing.T) {
		h.exec("box", "echo new > file")
		snap, err := take("box", engine.SnapshotRequest{Name: "x", Replace: true})
		if err != nil || snap.Name != "x" || snap.ID == old.ID {
			t.Fatalf("got %+v, %v", snap, err)
		}
		got, err := h.engine.Snapshot(t.Context(), alice, "box", "x")
		if err != nil || got.ID != snap.ID {
			t.Errorf("the name is of %+v, %v", got, err)
		}
		_, err = h.engine.Snapshot(t.Context(), alice, "", string(old.ID))
		wantCode(t, err, fault.NotFound)
		h.settledKept()
		evs := h.events(old.Sandbox)
		if last := evs[len(evs)-1]; last.Type != sandbox.EventSnapshotDeleted || last.ProcessID != string(old.ID) ||
			!strings.Contains(last.Detail, `named "x"`) || !strings.Contains(last.Detail, "replaced by "+string(snap.ID)) || last.Actor != "alice" {
			t.Errorf("the event: %+v", last)
		}
		if snap, err := take("other", engine.SnapshotRequest{Name: "y", Replace: true}); err != nil || snap.Name != "y" {
			t.Errorf("where there is nothing to replace: %+v, %v", snap, err)
		}
	})
	t.Run("OfTheOldOneStayWhenTheNewOneFails", func(t *testing.T) {
		before, _ := h.engine.Snapshot(t.Context(), alice, "box", "x")
		for _, hook := range []string{"before", "after"} {
			if hook == "before" {
				h.faulty.set(failing("snapshot"), nil)
			} else {
				h.faulty.set(nil, failing("snapshot"))
			}
			_, err := take("box", engine.SnapshotRequest{Name: "x", Replace: true})
			wantCode(t, err, fault.Unavailable)
			h.faulty.set(nil, nil)
			after, err := h.engine.Snapshot(t.Context(), alice, "box", "x")
			if err != nil || after.ID != before.ID {
				t.Errorf("%s: the name is of %+v, %v", hook, after, err)
			}
			if got := h.holds("box/x", "file"); got != "new\n" {
				t.Errorf("it holds %q", got)
			}
			h.keptWhole()
		}
	})
	t.Run("AreTakenWithTheirSandboxWhereverOneIsNamed", func(t *testing.T) {
		h.exec("other", "echo others > file")
		theirs := h.snapshot("other", "z")
		e := h.engine
		for of, ref := range map[string]string{"box": string(theirs.ID), "other": "other/z", "": "other/" + string(theirs.ID)} {
			if got, err := e.Snapshot(t.Context(), alice, of, ref); err != nil || got.ID != theirs.ID {
				t.Errorf("%s of %q is %+v, %v", ref, of, got, err)
			}
		}
		if _, err := e.Diff(t.Context(), alice, "box", engine.DiffRequest{From: "box/x", To: string(theirs.ID)}); err != nil {
			t.Error(err)
		}
		forks, err := e.Fork(t.Context(), alice, "other", engine.ForkRequest{From: "other/z"})
		if err != nil || len(forks) != 1 || forks[0].Parent != theirs.ID {
			t.Errorf("got %+v, %v", forks, err)
		}
		if s, err := e.Rollback(t.Context(), alice, "box", "box/x"); err != nil || s.Parent == theirs.ID {
			t.Errorf("got %+v, %v", s, err)
		}
		for _, ref := range []string{"box/z", "box/" + string(theirs.ID), "nobody/z", "other/z/", "/z", "other/", "../z"} {
			_, err := e.Rollback(t.Context(), alice, "box", ref)
			if wantCode(t, err, fault.NotFound); fault.As(err).Remedy == "" {
				t.Errorf("%s: nothing to do next: %v", ref, err)
			}
		}
		_, err = e.Rollback(t.Context(), alice, "box", "other/z")
		if wantCode(t, err, fault.Invalid); !strings.Contains(fault.As(err).Remedy, string(theirs.ID)) {
			t.Errorf("another's: %v", err)
		}
	})
	t.Run("ThatMakeNoSenseAreRefused", func(t *testing.T) {
		for _, r := range []engine.SnapshotRequest{
			{Name: "now"}, {Name: "base"}, {Name: "fresh"}, {Name: "a/b"}, {Name: "a\x00"}, {Name: ".."},
			{Name: string(sandbox.NewID())}, {Name: strings.Repeat("x", sandbox.MaxSnapshotName+1)}, {Replace: true},
		} {
			_, err := take("box", r)
			wantCode(t, err, fault.Invalid)
		}
		_, err := take("missing", engine.SnapshotRequest{})
		wantCode(t, err, fault.NotFound)
	})
}

func TestSnapshotsAreTheirProjects(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	snap := h.snapshot("box", "x")
	marys, _, err := h.engine.Create(t.Context(), mary, engine.CreateRequest{Key: "box"})
	if err != nil {
		t.Fatal(err)
	}
	e, id := h.engine, string(snap.ID)
	_, err = e.Snapshot(t.Context(), mary, "", id)
	wantCode(t, err, fault.NotFound)
	_, err = e.Snapshot(t.Context(), mary, "box", id)
	wantCode(t, err, fault.NotFound)
	_, err = e.Snapshot(t.Context(), mary, string(snap.Sandbox), "x")
	wantCode(t, err, fault.NotFound)
	wantCode(t, e.DeleteSnapshot(t.Context(), mary, "", id), fault.NotFound)
	_, err = e.Rollback(t.Context(), mary, "box", id)
	wantCode(t, err, fault.NotFound)
	_, err = e.Rollback(t.Context(), mary, "box", string(snap.Sandbox)+"/x")
	wantCode(t, err, fault.NotFound)
	_, err = e.Fork(t.Context(), mary, "box", engine.ForkRequest{From: id})
	wantCode(t, err, fault.NotFound)
	_, _, err = e.Create(t.Context(), mary, engine.CreateRequest{From: id})
	wantCode(t, err, fault.NotFound)
	_, err = e.Diff(t.Context(), mary, "box", engine.DiffRequest{From: id})
	wantCode(t, err, fault.NotFound)
	wantCode(t, e.ExportSnapshot(t.Context(), mary, "", id, &strings.Builder{}), fault.NotFound)
	_, err = e.Snapshots(t.Context(), mary, snapshot.Query{Sandbox: string(snap.Sandbox)})
	wantCode(t, err, fault.NotFound)
	p, err := e.Snapshots(t.Context(), mary, snapshot.Query{})
	if err != nil || len(p.Items)+p.Total != 0 {
		t.Errorf("got %+v, %v", p, err)
	}
	if got := h.get(marys.ID); got.State != sandbox.Running || got.Parent != "" {
		t.Errorf("got %+v", got)
	}
	_, err = e.CreateSnapshot(t.Context(), nobody, "box", engine.SnapshotRequest{})
	wantCode(t, err, fault.Denied)
	wantCode(t, e.DeleteSnapshot(t.Context(), nobody, "", id), fault.Denied)
	h.keptWhole()
}

func TestSnapshotLists(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	h.create(engine.CreateRequest{Key: "other"})
	a, b, c := h.snapshot("box", "a"), h.snapshot("box", ""), h.snapshot("other", "c")
	wantIDs(t, ids(h.list(snapshot.Query{})), c.ID, b.ID, a.ID)
	wantIDs(t, ids(h.list(snapshot.Query{Oldest: true, Sandbox: "box"})), a.ID, b.ID)
	wantIDs(t, ids(h.list(snapshot.Query{Sandbox: string(s.ID)})), b.ID, a.ID)
	p, err := h.engine.Snapshots(t.Context(), alice, snapshot.Query{Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	checktest.Equal(t, "Total", p.Total, 3)
	checktest.Some(t, "Next", p.Next)
	wantIDs(t, ids(h.list(snapshot.Query{Limit: 2, Cursor: p.Next})), a.ID)
	_, err = h.engine.Snapshots(t.Context(), alice, snapshot.Query{Limit: store.MaxPage + 1})
	wantCode(t, err, fault.Invalid)
	_, err = h.engine.Snapshots(t.Context(), alice, snapshot.Query{Sandbox: "missing"})
	wantCode(t, err, fault.NotFound)

	t.Run("NameTheSameInEveryWay", func(t *testing.T) {
		for _, w := range [][2]string{{"box", "a"}, {"", "box/a"}, {"", string(s.ID) + "/a"}, {"", string(a.ID)}, {string(s.ID), "a"}, {"other", string(a.ID)}, {"box", "box/a"}, {"box", string(s.ID) + "/a"}} {
			got, err := h.engine.Snapshot(t.Context(), alice, w[0], w[1])
			if err != nil || got.ID != a.ID {
				t.Errorf("%q: got %+v, %v", w, got, err)
			}
		}
		for _, w := range [][2]string{{"", "a"}, {"other", "a"}, {"", "other/a"}, {"", "/a"}, {"", "box/"}, {"", ""}, {"box", "now"}, {"missing", "a"}} {
			_, err := h.engine.Snapshot(t.Context(), alice, w[0], w[1])
			wantCode(t, err, fault.NotFound)
		}
	})
	t.Run("OfADeletedSandboxHoldTheNamedOnesOnly", func(t *testing.T) {
		h.remove("box")
		h.settledKept()
		wantIDs(t, ids(h.list(snapshot.Query{Sandbox: string(s.ID)})), a.ID)
		got, err := h.engine.Snapshot(t.Context(), alice, "", string(s.ID)+"/a")
		if err != nil || got.ID != a.ID {
			t.Errorf("got %+v, %v", got, err)
		}
		evs := h.events(s.ID)
		if last := evs[len(evs)-1]; last.Type != sandbox.EventSnapshotDeleted || last.ProcessID != string(b.ID) || last.Actor != "alice" || !strings.Contains(last.Detail, "with its sandbox") {
			t.Errorf("the event: %+v", last)
		}
	})
}

func TestDeleteSnapshot(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	h.exec("box", "echo kept > file")
	t.Run("LeavesTheEvents", func(t *testing.T) {
		snap := h.snapshot("box", "x")
		if err := h.engine.DeleteSnapshot(t.Context(), alice, "box", "x"); err != nil {
			t.Fatal(err)
		}
		wantCode(t, h.engine.DeleteSnapshot(t.Context(), alice, "box", "x"), fault.NotFound)
		h.keptWhole()
		evs := h.events(s.ID)
		if last := evs[len(evs)-1]; last.Type != sandbox.EventSnapshotDeleted || last.ProcessID != string(snap.ID) || !strings.Contains(last.Detail, "alice") || !strings.Contains(last.Detail, `"x"`) {
			t.Errorf("the event: %+v", last)
		}
		if again := h.snapshot("box", "x"); again.Parent != snap.ID {
			t.Errorf("got %+v", again)
		}
	})
	t.Run("WaitsForASandboxThatIsBeingMadeOfIt", func(t *testing.T) {
		snap := h.snapshot("box", "used")
		deleted := make(chan error, 1)
		begun := make(chan struct{})
		h.faulty.set(func(_ context.Context, call string) error {
			if call == "create" {
				go func() {
					close(begun)
					deleted <- h.engine.DeleteSnapshot(context.Background(), alice, "", string(snap.ID))
				}()
				<-begun
				select {
				case err := <-deleted:
					t.Errorf("it was deleted meanwhile: %v", err)
				case <-time.After(50 * time.Millisecond):
				}
			}
			return nil
		}, nil)
		made := h.create(engine.CreateRequest{From: "box/used"})
		h.faulty.set(nil, nil)
		if err := <-deleted; err != nil {
			t.Errorf("afterwards: %v", err)
		}
		if got := h.reads(string(made.ID), "file"); got != "kept\n" {
			t.Errorf("it holds %q", got)
		}
		h.remove(string(made.ID))
		h.keptWhole()
	})
	t.Run("ThatIsReadForLongIsRefused", func(t *testing.T) {
		h.engine.Impatient(soonEnough)
		snap := h.snapshot("box", "read")
		r, w := io.Pipe()
		over := make(chan error, 1)
		go func() {
			over <- h.engine.ExportSnapshot(context.Background(), alice, "box", "read", w)
			_ = w.Close()
		}()
		if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		err := h.engine.DeleteSnapshot(t.Context(), alice, "box", "read")
		wantCode(t, err, fault.Conflict)
		if e := fault.As(err); !strings.Contains(e.Message, string(snap.ID)) || e.Retry == 0 || e.Remedy == "" {
			t.Errorf("got %+v", e)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Error(err)
		}
		if err := <-over; err != nil {
			t.Errorf("the export: %v", err)
		}
		if err := h.engine.DeleteSnapshot(t.Context(), alice, "box", "read"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		h.keptWhole()
	})
	finished := func(t *testing.T, how string) {
		snap, err := h.engine.CreateSnapshot(t.Context(), alice, "box", engine.SnapshotRequest{Name: "stuck", Replace: true})
		if err != nil {
			t.Fatal(err)
		}
		h.settledKept()
		h.faulty.set(failing("remove snapshot"), nil)
		wantCode(t, h.engine.DeleteSnapshot(t.Context(), alice, "box", "stuck"), fault.Unavailable)
		_, err = h.engine.Snapshot(t.Context(), alice, "", string(snap.ID))
		wantCode(t, err, fault.NotFound) // it is no more, for callers
		again := h.snapshot("box", "stuck")
		if how == "by the next start" {
			h.restart()
		} else {
			h.faulty.set(nil, nil)
			h.engine.Strike(t.Context(), snap.ID)
		}
		h.keptWhole()
		if got, err := h.engine.Snapshot(t.Context(), alice, "box", "stuck"); err != nil || got.ID != again.ID {
			t.Errorf("got %+v, %v", got, err)
		}
		n := 0
		for _, ev := range h.events(s.ID) {
			if ev.Type == sandbox.EventSnapshotDeleted && ev.ProcessID == string(snap.ID) && strings.Contains(ev.Detail, "alice") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d events of it", n)
		}
	}
	t.Run("ThatTheDriverRefusesIsFinishedByTheNextStart", func(t *testing.T) { finished(t, "by the next start") })
	t.Run("OrByTheClock", func(t *testing.T) { finished(t, "by the clock") })
}

func TestSnapshotsHaveABound(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	h.snapshot("box", "x")
	err := h.store.Update(t.Context(), func(tx store.Tx) error {
		for i := range sandbox.MaxSnapshots - 1 {
			err := tx.Snapshots().Insert(&sandbox.Snapshot{
				ID: sandbox.NewID(), Project: "default", Sandbox: s.ID, Name: fmt.Sprint("n", i), Runtime: "memory",
				State: sandbox.SnapshotReady, CreatedAt: time.Now(),
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.engine.CreateSnapshot(t.Context(), alice, "box", engine.SnapshotRequest{})
	wantCode(t, err, fault.Exhausted)
	if _, err := h.engine.CreateSnapshot(t.Context(), alice, "box", engine.SnapshotRequest{Name: "x", Replace: true}); err != nil {
		t.Errorf("one that makes room: %v", err)
	}
}

// What a crash of the host took back of a deletion goes again. What this store has
// never heard of is another store's, and stays; so does a volume that was not deleted.
func TestWhatNoRecordMentions(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	snap := h.snapshot("box", "x")
	vol, err := h.volumes().CreateVolume(t.Context(), alice, volume.Request{Name: "v"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.engine.DeleteSnapshot(t.Context(), alice, "box", "x"); err != nil {
		t.Fatal(err)
	}
	if err := h.volumes().DeleteVolume(t.Context(), alice, "v"); err != nil {
		t.Fatal(err)
	}
	h.end()
	d := h.host.Driver()
	foreign, foreignVolume := sandbox.NewID(), sandbox.NewID()
	for _, id := range []sandbox.ID{snap.ID, foreign} {
		if _, err := d.Snapshot(t.Context(), s.ID, id); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []sandbox.ID{vol.ID, foreignVolume} {
		if err := d.CreateVolume(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
	}
	h.serve()
	got, err := d.Snapshots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantIDs(t, got, foreign)
	if got, err = d.Volumes(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, got, foreignVolume)
}
