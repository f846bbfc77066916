// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// archiveNew takes a snapshot box/x of a file that says so, and archives it.
func (h *house) archiveNew(says string) *sandbox.Snapshot {
	h.t.Helper()
	h.create(engine.CreateRequest{Key: "box"})
	h.exec("box", "echo "+says+" > file; mkdir -p d; ln -s ../file d/link; seq 500 > d/many")
	h.snapshot("box", "x")
	return h.archiveAgain("box/x")
}

func (h *house) archiveAgain(ref string) *sandbox.Snapshot {
	h.t.Helper()
	s, err := h.engine.ArchiveSnapshot(h.t.Context(), alice, "", ref)
	if err != nil || !s.Archived() || s.Archive.PackedBytes <= 0 {
		h.t.Fatalf("ArchiveSnapshot: %+v, %v", s, err)
	}
	return s
}

// snapshotsInOnePlace waits until every archive has an owner, and checks that each snapshot is either in the archive or here.
func (h *house) snapshotsInOnePlace() {
	h.t.Helper()
	h.await("the removal of archives", func() bool {
		n := 0
		if err := h.store.View(context.Background(), func(tx store.Tx) error {
			all, err := tx.UnownedArchives().All()
			n = len(all)
			return err
		}); err != nil {
			h.t.Fatal(err)
		}
		return n == 0
	})
	ids, err := h.host.Driver().Snapshots(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	here := make(map[sandbox.ID]bool)
	for _, id := range ids {
		here[id] = true
	}
	want := 0
	for _, s := range h.list(snapshot.Query{}) {
		if s.Archived() == here[s.ID] || !s.Archived() && s.Archive != (sandbox.Archive{}) {
			h.t.Errorf("the snapshot %s is on the host: %v; its archive: %+v", s.ID, here[s.ID], s.Archive)
		}
		if s.Archived() {
			want++
		}
		delete(here, s.ID)
	}
	if len(here) > 0 {
		h.t.Errorf("the host has %v of no snapshot", here)
	}
	if got := h.archived(); len(got) != want {
		h.t.Errorf("%d snapshots are archived, and there is %v", want, got)
	}
}

func TestAnArchivedSnapshotComesBackWhenItIsUsed(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.archiveNew("one")
	h.snapshotsInOnePlace()
	ctx := t.Context()
	h.exec("box", "echo two > file")
	for name, use := range map[string]func() error{
		"create": func() error {
			if got := h.holds("box/x", "file"); got != "one\n" {
				return fmt.Errorf("its file: %q", got)
			}
			return nil
		},
		"fork": func() error {
			made, err := h.engine.Fork(ctx, alice, "box", engine.ForkRequest{From: "x", Count: 2})
			for _, m := range made {
				if got := string(h.exec(string(m.ID), "cat d/link; tail -n 1 d/many").Stdout); got != "one\n500\n" {
					t.Errorf("a fork's files: %q", got)
				}
				h.remove(string(m.ID))
			}
			return err
		},
		"diff": func() error {
			_, err := h.engine.Diff(ctx, alice, "box", engine.DiffRequest{From: "x"})
			return err
		},
		"export": func() error {
			var b strings.Builder
			return h.engine.ExportSnapshot(ctx, alice, "", "box/x", &b)
		},
		"rollback": func() error {
			_, err := h.engine.Rollback(ctx, alice, "box", "x")
			if got := h.reads("box", "file"); err == nil && got != "one\n" {
				err = fmt.Errorf("its file: %q", got)
			}
			return err
		},
	} {
		if got := h.archiveAgain("box/x"); got.Archive.ID == s.Archive.ID && name == "" {
			t.Error(got)
		}
		h.restart() // it is archived for the next server, too
		h.snapshotsInOnePlace()
		if err := use(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := h.engine.Snapshot(ctx, alice, "", "box/x"); err != nil || got.Archived() {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		h.snapshotsInOnePlace()
	}
	h.archiveAgain("box/x")
	if again := h.archiveAgain("box/x"); !again.Archived() {
		t.Errorf("archived twice: %+v", again)
	}
	if _, err := h.engine.ArchiveSnapshot(ctx, nobody, "", "box/x"); fault.Of(err) != fault.Denied {
		t.Errorf("nobody: %v", err)
	}
	if err := h.engine.DeleteSnapshot(ctx, alice, "", "box/x"); err != nil {
		t.Fatal(err)
	}
	h.restart(func(o *engine.Options) { o.JanitorRound = 10 * time.Millisecond })
	h.snapshotsInOnePlace()
	h.snapshot("box", "y")
	h.restart(func(o *engine.Options) { o.Archives = nil })
	if _, err := h.engine.ArchiveSnapshot(ctx, alice, "", "box/y"); !fault.Is(err, fault.Unsupported) {
		t.Errorf("without a place: %v", err)
	}
}

// What becomes of an archive elsewhere is told, and leaves the snapshot as it is.
func TestAnArchiveOfASnapshotThatIsNotWhatWasWrittenIsNotUsed(t *testing.T) {
	h := open(t, t.TempDir())
	h.archiveNew("one")
	path := h.archived()[0]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"empty": {}, "cut off": whole[:len(whole)-1], "flipped": append([]byte{whole[0] ^ 1}, whole[1:]...)} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{From: "box/x"})
		if f := fault.As(err); err == nil || f.Code != fault.State || f.Remedy == "" {
			t.Errorf("%s: %v", name, err)
		}
		h.snapshotsInOnePlace()
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := h.holds("box/x", "file"); got != "one\n" {
		t.Errorf("with the archive put back: %q", got)
	}
	h.snapshotsInOnePlace()
}

func TestAPlaceThatFailsLeavesTheSnapshotAsItWas(t *testing.T) {
	dead := &deadBlobs{}
	h := open(t, t.TempDir(), func(o *engine.Options) {
		dead.Store, o.Archives, o.JanitorRound = o.Archives, dead, 10*time.Millisecond
	})
	gone := fault.New(fault.Unavailable, "the bucket does not answer").WithRemedy("ask again")
	h.create(engine.CreateRequest{Key: "box"})
	h.exec("box", "echo one > file")
	h.snapshot("box", "x")
	for name, set := range map[string]func(){
		"dead":         func() { dead.set(gone, nil, gone) },
		"not readable": func() { dead.set(nil, gone, gone) },
	} {
		set()
		if _, err := h.engine.ArchiveSnapshot(t.Context(), alice, "box", "x"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := h.engine.Snapshot(t.Context(), alice, "box", "x"); err != nil || got.Archive != (sandbox.Archive{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	dead.set(nil, nil, nil)
	h.snapshotsInOnePlace()
	h.archiveAgain("box/x")
	dead.set(nil, gone, nil)
	if _, err := h.engine.Rollback(t.Context(), alice, "box", "x"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a rollback from a dead place: %v", err)
	}
	h.snapshotsInOnePlace()
	dead.set(nil, nil, nil)
	if got := h.holds("box/x", "file"); got != "one\n" {
		t.Errorf("its file: %q", got)
	}
	h.snapshotsInOnePlace()
}

// Those who archive, use, replace and delete snapshots at the same time see whole ones, or none.
func TestSnapshotsAreArchivedWhileTheyAreUsed(t *testing.T) {
	h := open(t, t.TempDir(), func(o *engine.Options) { o.JanitorRound = 10 * time.Millisecond })
	h.create(engine.CreateRequest{Key: "box"})
	h.exec("box", "echo one > file")
	h.snapshot("box", "x")
	h.snapshot("box", "y")
	ctx := t.Context()
	var all sync.WaitGroup
	for _, do := range []func(int) error{
		func(int) error { _, err := h.engine.ArchiveSnapshot(ctx, alice, "box", "x"); return err },
		func(int) error {
			s, _, err := h.engine.Create(ctx, alice, engine.CreateRequest{From: "box/x"})
			if err != nil {
				return err
			}
			if got := h.reads(string(s.ID), "file"); got != "one\n" {
				t.Errorf("one that was made of it: %q", got)
			}
			return h.engine.Delete(ctx, alice, string(s.ID))
		},
		func(int) error { _, err := h.engine.Rollback(ctx, alice, "box", "x"); return err },
		func(int) error { _, err := h.engine.ArchiveSnapshot(ctx, alice, "box", "y"); return err },
		func(n int) error {
			if n%2 == 0 {
				return h.engine.DeleteSnapshot(ctx, alice, "box", "y")
			}
			_, err := h.engine.CreateSnapshot(ctx, alice, "box", engine.SnapshotRequest{Name: "y", Replace: true})
			return err
		},
	} {
		all.Go(func() {
			for n := range 6 {
				if err := do(n); err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	h.await("the removal of what was deleted", func() bool {
		snaps, _ := h.keptRecords()
		return len(snaps) == 2
	})
	h.snapshotsInOnePlace()
	if got := h.holds("box/x", "file"); got != "one\n" {
		t.Errorf("in the end: %q", got)
	}
}

// crashArchivingSnapshot is what the process that is to die does with the archive of a snapshot.
func crashArchivingSnapshot(ctx context.Context, e *engine.Engine, scenario string, armed *atomic.Bool) error {
	if _, _, err := e.Create(ctx, alice, engine.CreateRequest{Key: "box"}); err != nil {
		return err
	}
	if _, err := e.Exec(ctx, alice, "box", engine.ExecRequest{Shell: "echo one > file"}, nil); err != nil {
		return err
	}
	if _, err := e.CreateSnapshot(ctx, alice, "box", engine.SnapshotRequest{Name: "x"}); err != nil {
		return err
	}
	if scenario != "archiveSnapshot" {
		if _, err := e.ArchiveSnapshot(ctx, alice, "box", "x"); err != nil {
			return err
		}
	}
	armed.Store(true)
	var err error
	switch scenario {
	case "archiveSnapshot":
		_, err = e.ArchiveSnapshot(ctx, alice, "box", "x")
	case "unarchiveSnapshot":
		_, err = e.Rollback(ctx, alice, "box", "x")
	case "unsnapshot":
		err = e.DeleteSnapshot(ctx, alice, "box", "x")
	}
	if err != nil {
		return err
	}
	select {}
}

// TestAServerThatIsKilledAtTheArchiveOfASnapshot kills a server with SIGKILL at every commit point of it.
func TestAServerThatIsKilledAtTheArchiveOfASnapshot(t *testing.T) {
	skiptest.WithShort(t, "a server is killed at each step of each verb")
	const here, away, gone = "here", "archived", "gone"
	for _, c := range []struct{ scenario, point, want string }{
		{"archiveSnapshot", "snapshot.archive.intent", here},
		{"archiveSnapshot", "archive.packed", here},
		{"archiveSnapshot", "archive.verified", here},
		{"archiveSnapshot", "snapshot.archive.whole", away},
		{"archiveSnapshot", "snapshot.archive.emptied", away},
		{"unarchiveSnapshot", "snapshot.unarchive.begun", away},
		{"unarchiveSnapshot", "snapshot.unarchive.unpacked", away},
		{"unarchiveSnapshot", "snapshot.unarchive.outcome", here},
		{"unarchiveSnapshot", "rollback.intent", here},
		{"unarchiveSnapshot", "unarchive.removed", here},
		{"unsnapshot", "unsnapshot.intent", gone},
		{"unsnapshot", "unsnapshot.done", gone},
		{"unsnapshot", "unsnapshot.outcome", gone},
	} {
		t.Run(c.scenario+"_"+c.point, func(t *testing.T) {
			t.Parallel()
			at := t.TempDir()
			killAt(t, at, fmt.Sprintf("%s%s:%s", archiving, c.scenario, c.point))
			h := open(t, at, func(o *engine.Options) { o.JanitorRound = 10 * time.Millisecond })
			h.whole()
			h.snapshotsInOnePlace()
			s, err := h.engine.Snapshot(t.Context(), alice, "box", "x")
			if c.want == gone {
				if !fault.Is(err, fault.NotFound) {
					t.Errorf("it is there: %+v, %v", s, err)
				}
				return
			}
			if err != nil || s.Archived() != (c.want == away) {
				t.Fatalf("got %+v, %v; want it %s", s, err, c.want)
			}
			if got := h.holds("box/x", "file"); got != "one\n" {
				t.Errorf("its file: %q", got)
			}
			h.snapshotsInOnePlace()
		})
	}
}
