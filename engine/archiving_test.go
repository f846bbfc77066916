// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/blob"
	"sandpit.dev/blob/dir"
	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// archiveOf is where a house in a directory keeps archives.
func archiveOf(house string) blob.Store { return dir.New(filepath.Join(house, "archive")) }

// archived are the files in it.
func (h *house) archived() []string {
	h.t.Helper()
	list, err := filepath.Glob(filepath.Join(h.dir, "archive", "*"))
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

// archivedWhole waits until nothing is archived but what records name, and looks that it is so.
func (h *house) archivedWhole() {
	h.t.Helper()
	unowned := func() (n int) {
		err := h.store.View(context.Background(), func(tx store.Tx) error {
			all, err := tx.UnownedArchives().All()
			n = len(all)
			return err
		})
		if err != nil {
			h.t.Fatal(err)
		}
		return n
	}
	h.await("the removal of archives", func() bool { return unowned() == 0 })
	want := 0
	p, err := h.engine.List(h.t.Context(), alice, engine.SandboxesRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, s := range p.Items {
		if whole := s.Archive.Whole(); whole != (s.State == sandbox.Archived) || !whole && s.Archive != (sandbox.Archive{}) {
			h.t.Errorf("the sandbox %s is %s, and its archive %+v", s.ID, s.State, s.Archive)
		} else if whole {
			want++
		}
	}
	if got := h.archived(); len(got) != want {
		h.t.Errorf("%d sandboxes are archived, and there is %v", want, got)
	}
}

// putAway makes a sandbox with a file that says so, stops and archives it.
func (h *house) putAway(key, says string) *sandbox.Sandbox {
	h.t.Helper()
	s := h.create(engine.CreateRequest{Key: key})
	h.exec(key, "echo "+says+" > file; mkdir -p d; ln -s ../file d/link; seq 500 > d/many")
	h.stopAndArchive(key)
	return s
}

func (h *house) stopAndArchive(ref string) *sandbox.Sandbox {
	h.t.Helper()
	if _, err := h.engine.Stop(h.t.Context(), alice, ref); err != nil {
		h.t.Fatal(err)
	}
	s, err := h.engine.Archive(h.t.Context(), alice, ref)
	if err != nil || s.State != sandbox.Archived || !s.Archive.Whole() || s.Archive.PackedBytes <= 0 {
		h.t.Fatalf("Archive: %+v, %v", s, err)
	}
	return s
}

func TestAnArchivedSandboxComesBackWhole(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.putAway("box", "one")
	if got := h.archived(); len(got) != 1 {
		t.Fatalf("archived: %v", got)
	}
	full, err := os.ReadDir(filepath.Join(h.dir, "host"))
	if err != nil || len(full) == 0 {
		t.Fatalf("the host has %v, %v", full, err)
	}
	if again, err := h.engine.Archive(t.Context(), alice, "box"); err != nil || again.State != sandbox.Archived {
		t.Errorf("archived twice: %+v, %v", again, err)
	}
	if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
		t.Errorf("a stop of an archived one: %v", err)
	}
	h.restart()
	if got := h.get(s.ID); got.State != sandbox.Archived {
		t.Errorf("after a restart it is %s", got.State)
	}
	if got, err := h.engine.Start(t.Context(), alice, "box"); err != nil || got.State != sandbox.Running || got.Archive != (sandbox.Archive{}) {
		t.Fatalf("Start: %+v, %v", got, err)
	}
	if got := string(h.exec("box", "cat file d/link; tail -n 1 d/many").Stdout); got != "one\none\n500\n" {
		t.Errorf("its files: %q", got)
	}
	h.archivedWhole()
	h.keptWhole()
	h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventExec, sandbox.EventStopped, sandbox.EventArchived,
		sandbox.EventUnarchived, sandbox.EventStarted, sandbox.EventExec)
}

func TestACallBringsAnArchivedSandboxBackAsAStoppedOne(t *testing.T) {
	h := open(t, t.TempDir())
	h.putAway("box", "one")
	_, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "true"}, nil)
	if f := fault.As(err); f.Code != fault.State || !strings.Contains(f.Message, "archived") || !strings.Contains(f.Remedy, "start") {
		t.Errorf("a caller had stopped it: %v (%s)", err, f.Remedy)
	}
	if _, created, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "box"}); err != nil || created {
		t.Fatalf("a create with its key: created %v, %v", created, err)
	}
	// Its host goes away under it, and it is archived by a clock's hand.
	if _, err := h.engine.Update(t.Context(), alice, "box", update.Patch{IdleTimeout: ptr(time.Second)}); err != nil {
		t.Fatal(err)
	}
	h.await("its stop", func() bool { return h.get(h.id("box")).State == sandbox.Stopped })
	if _, err := h.engine.Archive(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	if got := h.reads("box", "file"); got != "one\n" {
		t.Errorf("after a call: %q", got)
	}
}

func TestWhatNeedsTheDiskIsRefusedWhileItIsArchived(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.putAway("box", "one")
	ctx := t.Context()
	run := h.create(engine.CreateRequest{Key: "up"})
	for name, do := range map[string]func() error{
		"snapshot": func() error {
			_, err := h.engine.CreateSnapshot(ctx, alice, "box", engine.SnapshotRequest{})
			return err
		},
		"fork":     func() error { _, err := h.engine.Fork(ctx, alice, "box", engine.ForkRequest{}); return err },
		"diff":     func() error { _, err := h.engine.Diff(ctx, alice, "box", engine.DiffRequest{}); return err },
		"rollback": func() error { _, err := h.engine.Rollback(ctx, alice, "box", "base"); return err },
		"reset":    func() error { _, err := h.engine.Reset(ctx, alice, "box"); return err },
		"pause":    func() error { _, err := h.engine.Pause(ctx, alice, "box"); return err },
		"resume":   func() error { _, err := h.engine.Resume(ctx, alice, "box"); return err },
	} {
		f := fault.As(do())
		if f == nil || f.Code != fault.State || !strings.Contains(f.Message, "archived") || !strings.Contains(f.Remedy, "start box") {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if _, err := h.engine.Archive(ctx, alice, string(run.ID)); fault.Of(err) != fault.State || !strings.Contains(fault.As(err).Remedy, "stop") {
		t.Errorf("one that runs: %v", err)
	}
	if _, err := h.engine.Archive(ctx, nobody, "box"); fault.Of(err) != fault.Denied {
		t.Errorf("nobody: %v", err)
	}
	if got := h.get(s.ID); got.State != sandbox.Archived {
		t.Errorf("it is %s", got.State)
	}
	h.archivedWhole()
}

func TestASnapshotOutlivesTheArchiveAndTheSandbox(t *testing.T) {
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	h.exec("box", "echo one > file")
	h.snapshot("box", "x")
	h.exec("box", "echo two > file")
	h.stopAndArchive("box")
	if got := h.holds("box/x", "file"); got != "one\n" {
		t.Errorf("its snapshot: %q", got)
	}
	if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	if got := h.reads("box", "file"); got != "two\n" {
		t.Errorf("its file: %q", got)
	}
	if _, err := h.engine.Rollback(t.Context(), alice, "box", "x"); err != nil {
		t.Error(err)
	}
	h.stopAndArchive("box")
	h.remove("box")
	h.archivedWhole()
	if got := h.archived(); len(got) != 0 {
		t.Errorf("after its deletion: %v", got)
	}
}

// A clock archives it, and another deletes it, with the archive.
func TestClocksArchiveASandboxAndDeleteIt(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box", ArchiveAfter: time.Second})
	h.exec("box", "echo one > file")
	if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	h.await("its archive", func() bool { return h.get(s.ID).State == sandbox.Archived })
	evs := h.events(s.ID)
	if last := evs[len(evs)-1]; last.Type != sandbox.EventArchived || last.Actor != "system" || !strings.Contains(last.Detail, "archive_after") {
		t.Errorf("the last event: %+v", last)
	}
	if _, err := h.engine.Update(t.Context(), alice, "box", update.Patch{Retention: ptr(time.Second)}); err != nil {
		t.Fatal(err)
	}
	h.await("its deletion", func() bool { return h.get(s.ID) == nil })
	h.archivedWhole()
}

// What becomes of an archive elsewhere is told, and leaves the sandbox as it is.
func TestAnArchiveThatIsNotWhatWasWrittenIsNotUsed(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.putAway("box", "one")
	path := h.archived()[0]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := h.putAway("other", "two")
	swapped, err := os.ReadFile(h.archived()[0])
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(swapped, whole) {
		if swapped, err = os.ReadFile(h.archived()[1]); err != nil {
			t.Fatal(err)
		}
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, data := range map[string][]byte{
		"nothing": nil, "empty": {}, "cut off": whole[:len(whole)-1], "longer": append(bytes.Clone(whole), 0), "flipped": flipped,
		"another's": swapped, "noise": bytes.Repeat([]byte("noise"), 1000),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "nothing" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		_, err := h.engine.Start(t.Context(), alice, "box")
		f := fault.As(err)
		if f == nil || f.Code != fault.State || !strings.Contains(f.Message, "box") || f.Remedy == "" {
			t.Errorf("%s: %v", name, err)
		}
		if got := h.get(s.ID); got.State != sandbox.Archived || !got.Archive.Whole() {
			t.Errorf("%s: it is %s", name, got.State)
		}
		h.keptWhole()
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
		t.Errorf("with the archive put back: %v", err)
	}
	if got := h.reads("box", "file"); got != "one\n" {
		t.Errorf("its file: %q", got)
	}
	h.remove(string(other.ID))
	h.archivedWhole()
}

// deadBlobs are those of a place that does not answer, or answers too late.
type deadBlobs struct {
	blob.Store

	mu                sync.Mutex
	put, open, remove error
}

func (d *deadBlobs) set(put, open, remove error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.put, d.open, d.remove = put, open, remove
}

func (d *deadBlobs) errors() (put, open, remove error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.put, d.open, d.remove
}

func (d *deadBlobs) Put(ctx context.Context, name string, r io.Reader) error {
	if err, _, _ := d.errors(); err != nil {
		_, _ = io.CopyN(io.Discard, r, 100)
		return err
	}
	return d.Store.Put(ctx, name, r)
}

func (d *deadBlobs) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if _, err, _ := d.errors(); err != nil {
		return nil, err
	}
	return d.Store.Open(ctx, name)
}

func (d *deadBlobs) Remove(ctx context.Context, name string) error {
	if _, _, err := d.errors(); err != nil {
		return err
	}
	return d.Store.Remove(ctx, name)
}

func TestAPlaceThatFailsLeavesTheSandboxAsItWas(t *testing.T) {
	dead := &deadBlobs{}
	h := open(t, t.TempDir(), func(o *engine.Options) {
		dead.Store, o.Archives, o.JanitorRound = o.Archives, dead, 10*time.Millisecond
	})
	full := fault.NoSpace(fault.HostDisk, errors.New("no space"), "the disk of the archives is full").WithRemedy("make room")
	gone := fault.New(fault.Unavailable, "the bucket does not answer").WithRemedy("ask again")
	s := h.create(engine.CreateRequest{Key: "box"})
	h.exec("box", "echo one > file")
	if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]func(){
		"full":         func() { dead.set(full, nil, gone) },
		"dead":         func() { dead.set(gone, nil, gone) },
		"not readable": func() { dead.set(nil, gone, gone) },
	} {
		set()
		_, err := h.engine.Archive(t.Context(), alice, "box")
		if f := fault.As(err); err == nil || f.Code != fault.Full && f.Code != fault.Unavailable || f.Remedy == "" {
			t.Errorf("%s: %v", name, err)
		}
		got := h.get(s.ID)
		if got.State != sandbox.Stopped || got.Archive != (sandbox.Archive{}) || got.StopCause != sandbox.CauseUser {
			t.Errorf("%s: %+v", name, got)
		}
		evs := h.events(s.ID)
		if last := evs[len(evs)-1]; last.Type != sandbox.EventFailed || last.OK || !strings.HasPrefix(last.Detail, "archive: ") {
			t.Errorf("%s: the last event %+v", name, last)
		}
		h.keptWhole()
	}
	dead.set(nil, nil, gone)
	if _, err := h.engine.Archive(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	dead.set(nil, gone, gone)
	if _, err := h.engine.Start(t.Context(), alice, "box"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a start from a dead place: %v", err)
	}
	if got := h.get(s.ID); got.State != sandbox.Archived {
		t.Errorf("it is %s", got.State)
	}
	dead.set(nil, nil, gone)
	if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil { // though the archive cannot be removed
		t.Fatal(err)
	}
	if got := h.reads("box", "file"); got != "one\n" {
		t.Errorf("its file: %q", got)
	}
	dead.set(nil, nil, nil)
	h.archivedWhole() // the janitor removes what could not be
}

func TestAnArchiveInAnotherPlaceIsNamed(t *testing.T) {
	h := open(t, t.TempDir())
	h.putAway("box", "one")
	elsewhere := dir.New(t.TempDir())
	for name, change := range map[string]func(*engine.Options){
		"elsewhere": func(o *engine.Options) { o.Archives = elsewhere },
		"nowhere":   func(o *engine.Options) { o.Archives = nil },
	} {
		h.restart(change)
		_, err := h.engine.Start(t.Context(), alice, "box")
		if f := fault.As(err); err == nil || f.Code != fault.State || !strings.Contains(f.Message, h.dir) || f.Remedy == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.create(engine.CreateRequest{Key: "more"})
	if _, err := h.engine.Stop(t.Context(), alice, "more"); err != nil {
		t.Fatal(err)
	}
	h.restart(func(o *engine.Options) { o.Archives = nil })
	if _, err := h.engine.Archive(t.Context(), alice, "more"); !fault.Is(err, fault.Unsupported) {
		t.Errorf("without a place: %v", err)
	}
	h.restart()
	if got, err := h.engine.Start(t.Context(), alice, "box"); err != nil || got.State != sandbox.Running {
		t.Errorf("with its place: %v", err)
	}
	h.archivedWhole()
}

// archiving begins a point at which a server is killed that archives; then come what it does, a colon
// and the point.
const archiving = "archiving:"

// crashArchiving is what the process that is to die does with an archive.
func crashArchiving(ctx context.Context, e *engine.Engine, scenario string, armed *atomic.Bool) error {
	if scenario == "archiveSnapshot" || scenario == "unarchiveSnapshot" || scenario == "unsnapshot" { // of a snapshot
		return crashArchivingSnapshot(ctx, e, scenario, armed)
	}
	if _, _, err := e.Create(ctx, alice, engine.CreateRequest{Key: "box"}); err != nil {
		return err
	}
	if _, err := e.Exec(ctx, alice, "box", engine.ExecRequest{Shell: "echo one > file"}, nil); err != nil {
		return err
	}
	if _, err := e.Stop(ctx, alice, "box"); err != nil {
		return err
	}
	if scenario != "archive" {
		if _, err := e.Archive(ctx, alice, "box"); err != nil {
			return err
		}
	}
	armed.Store(true)
	var err error
	switch scenario {
	case "archive":
		_, err = e.Archive(ctx, alice, "box")
	case "start":
		_, err = e.Start(ctx, alice, "box")
	case "delete":
		err = e.Delete(ctx, alice, "box")
	}
	if err != nil {
		return err
	}
	select {} // archives are removed behind the answer
}

// TestAServerThatIsKilledAtAnArchive kills a server with SIGKILL at every commit point of archiving, of bringing back
// and of deleting. Nothing is lost, and nothing is left behind.
func TestAServerThatIsKilledAtAnArchive(t *testing.T) {
	skiptest.WithShort(t, "a server is killed at each step of each verb")
	for _, c := range []struct {
		scenario, point string
		state           sandbox.State
	}{
		{"archive", "archive.intent", sandbox.Stopped},
		{"archive", "fork.intent", sandbox.Stopped},
		{"archive", "fork.kept", sandbox.Stopped},
		{"archive", "archive.packed", sandbox.Stopped},
		{"archive", "archive.verified", sandbox.Stopped},
		{"archive", "unsnapshot.done", sandbox.Stopped},
		{"archive", "archive.whole", sandbox.Archived},
		{"archive", "archive.emptied", sandbox.Archived},
		{"archive", "archive.outcome", sandbox.Archived},
		{"start", "unarchive.intent", sandbox.Archived},
		{"start", "unarchive.kept", sandbox.Archived},
		{"start", "unarchive.unpacked", sandbox.Archived},
		{"start", "unsnapshot.done", sandbox.Archived},
		{"start", "unarchive.done", sandbox.Archived},
		{"start", "unarchive.outcome", sandbox.Stopped},
		{"start", "start.intent", sandbox.Stopped},
		{"start", "start.outcome", sandbox.Stopped},
		{"start", "unarchive.removed", sandbox.Stopped},
		{"delete", "delete.intent", sandbox.Deleted},
		{"delete", "delete.done", sandbox.Deleted},
		{"delete", "delete.outcome", sandbox.Deleted},
		{"delete", "unarchive.removed", sandbox.Deleted},
	} {
		t.Run(c.scenario+"_"+c.point, func(t *testing.T) {
			t.Parallel()
			at := t.TempDir()
			killAt(t, at, fmt.Sprintf("%s%s:%s", archiving, c.scenario, c.point))
			h := open(t, at, func(o *engine.Options) { o.JanitorRound = 10 * time.Millisecond })
			h.whole()
			h.keptWhole()
			h.archivedWhole()
			s := h.get(h.events("")[0].Sandbox)
			if c.state == sandbox.Deleted {
				if s != nil {
					t.Errorf("it is %s", s.State)
				}
				h.nothing()
				return
			}
			if s == nil || s.State != c.state {
				t.Fatalf("got %+v, want %s", s, c.state)
			}
			if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
				t.Fatal(err)
			}
			if got := h.reads("box", "file"); got != "one\n" {
				t.Errorf("its file: %q", got)
			}
			h.archivedWhole()
		})
	}
}
