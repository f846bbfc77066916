// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

func mustSnapshot(tb testing.TB, s *Store, of, id string) int64 {
	tb.Helper()
	size, err := s.Snapshot(tb.Context(), of, id)
	if err != nil {
		tb.Fatalf("Snapshot(%s): %v", id, err)
	}
	return size
}

func mustCreateFrom(tb testing.TB, s *Store, id, snapshot string, limit int64) *Layer {
	tb.Helper()
	l, err := s.CreateFrom(tb.Context(), id, snapshot, limit)
	if err != nil {
		tb.Fatalf("CreateFrom(%s): %v", id, err)
	}
	tb.Cleanup(func() { l.Close() })
	return l
}

func mustFork(tb testing.TB, s *Store, id, of string, limit int64) *Layer {
	tb.Helper()
	l, err := s.Fork(tb.Context(), id, of, limit)
	if err != nil {
		tb.Fatalf("Fork(%s): %v", id, err)
	}
	tb.Cleanup(func() { l.Close() })
	return l
}

func describeSnapshot(tb testing.TB, s *Store, id string) map[string]string {
	tb.Helper()
	f, err := s.OpenSnapshot(id)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	return describe(tb, at(int(f.Fd()), "."))
}

func TestSnapshots(t *testing.T) { eachKind(t, testSnapshots) }

func testSnapshots(t *testing.T, opts Options) {
	t.Run("KeepWhatTheLayerWasAndCopiesAreOnTheirOwn", func(t *testing.T) {
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "firstlayer", 0)
		grow(t, at(l.Fd(), "upper"))
		growOverlay(t, at(l.Fd(), "upper"))
		want := describe(t, at(l.Fd(), "upper"))
		mustSnapshot(t, s, "firstlayer", "firstsnapshot")
		writeFile(t, at(l.Fd(), "upper/file"), []byte("written later"))
		sameTree(t, want, describeSnapshot(t, s, "firstsnapshot"))

		mustSnapshot(t, s, "firstsnapshot", "secondsnapshot")
		c := mustCreateFrom(t, s, "firstcopy", "secondsnapshot", 0)
		sameTree(t, want, describe(t, at(c.Fd(), "upper")))
		if err := os.RemoveAll(at(c.Fd(), "upper/dir")); err != nil {
			t.Fatal(err)
		}
		sameTree(t, want, describeSnapshot(t, s, "firstsnapshot"))
		for _, id := range []string{"firstsnapshot", "secondsnapshot"} {
			if err := s.RemoveSnapshot(id); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Remove("firstlayer"); err != nil {
			t.Fatal(err)
		}
		if err := s.trash.drain(); err != nil {
			t.Fatal(err)
		}
		if got := readFile(t, at(c.Fd(), "upper/file")); got != "content" {
			t.Errorf("the file of a copy whose source is gone: %q", got)
		}
	})
	t.Run("ACopyHasAnEmptyWorkDirectoryALogDirectoryAndAnIDOfItsOwn", func(t *testing.T) {
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "workedlayer", 0)
		if err := os.MkdirAll(at(l.Fd(), "work/index/00fb21"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setxattr(at(l.Fd(), "upper"), overlayAttrs+"uuid", make0(16), 0); err != nil {
			t.Fatal(err)
		}
		mustSnapshot(t, s, "workedlayer", "workedsnapshot")
		ids := map[string]bool{string(make0(16)): true}
		for _, id := range []string{"workedcopy1", "workedcopy2"} {
			c := mustCreateFrom(t, s, id, "workedsnapshot", 0)
			if err := c.FreshWork(); err != nil {
				t.Fatal(err)
			}
			if empty, err := isEmpty(c.Fd(), "work"); !empty || err != nil {
				t.Errorf("work is not empty: %v", err)
			}
			uuid := make([]byte, 64)
			n, err := unix.Getxattr(at(c.Fd(), "upper"), overlayAttrs+"uuid", uuid)
			if err != nil || n != 16 || ids[string(uuid[:n])] {
				t.Errorf("the overlay's id is %x, %v", uuid[:max(n, 0)], err)
			}
			ids[string(uuid[:max(n, 0)])] = true
			logs, err := s.Logs(id)
			if err != nil {
				t.Fatal(err)
			}
			if left, err := logs.Readdirnames(-1); err != nil || len(left) > 0 {
				t.Errorf("new logs hold %q, %v", left, err)
			}
			logs.Close()
			until(t, "what was put aside is deleted", func() bool {
				left, err := names(c.Fd())
				slices.Sort(left)
				return err == nil && slices.Equal(left, []string{"upper", "work"})
			})
		}
	})
	t.Run("AForkIsACopyOfTheLayerAsItIsOnItsOwn", func(t *testing.T) {
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "forkedlayer", 0)
		grow(t, at(l.Fd(), "upper"))
		growOverlay(t, at(l.Fd(), "upper"))
		if err := os.MkdirAll(at(l.Fd(), "work/index/00fb21"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setxattr(at(l.Fd(), "upper"), overlayAttrs+"uuid", make0(16), 0); err != nil {
			t.Fatal(err)
		}
		want := describe(t, at(l.Fd(), "upper"))
		f := mustFork(t, s, "firstfork", "forkedlayer", 0)
		writeFile(t, at(l.Fd(), "upper/file"), []byte("written later"))
		if err := f.FreshWork(); err != nil {
			t.Fatal(err)
		}
		if empty, err := isEmpty(f.Fd(), "work"); !empty || err != nil {
			t.Errorf("work is not empty: %v", err)
		}
		uuid := make([]byte, 64)
		if n, err := unix.Getxattr(at(f.Fd(), "upper"), overlayAttrs+"uuid", uuid); err != nil || n != 16 || string(uuid[:16]) == string(make0(16)) {
			t.Errorf("the overlay's id is %x, %v", uuid[:max(n, 0)], err)
		}
		if err := unix.Setxattr(at(f.Fd(), "upper"), overlayAttrs+"uuid", make0(16), 0); err != nil {
			t.Fatal(err)
		}
		sameTree(t, want, describe(t, at(f.Fd(), "upper")))
		logs, err := s.Logs("firstfork")
		if err != nil {
			t.Fatal(err)
		}
		logs.Close()
		if err := errors.Join(s.Remove("forkedlayer"), s.trash.drain()); err != nil {
			t.Fatal(err)
		}
		if got := readFile(t, at(f.Fd(), "upper/file")); got != "content" {
			t.Errorf("the file of a fork whose source is gone: %q", got)
		}
		mustSnapshot(t, s, "firstfork", "forksnapshot")
		if got := readFile(t, at(mustFork(t, s, "secondfork", "forksnapshot", 0).Fd(), "upper/file")); got != "content" {
			t.Errorf("the file of a fork of a snapshot: %q", got)
		}
	})
	t.Run("AForkIsAllOrNothing", func(t *testing.T) {
		s := mustOpen(t, opts)
		mustCreate(t, s, "forkedlayer", 0)
		mustCreate(t, s, "anotherlayer", 0)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, c := range []struct {
			id, of string
			limit  int64
			want   fault.Code
		}{
			{"theonlyfork", "nosuchlayer", 0, fault.NotFound}, {"anotherlayer", "forkedlayer", 0, fault.Exists},
			{"../theonlyfork", "forkedlayer", 0, fault.Invalid}, {"theonlyfork", "../layers", 0, fault.Invalid}, {"theonlyfork", "forkedlayer", 1, fault.Invalid},
		} {
			if _, err := s.Fork(t.Context(), c.id, c.of, c.limit); !fault.Is(err, c.want) {
				t.Errorf("Fork(%q, %q, %d): %v, want %s", c.id, c.of, c.limit, err, c.want)
			}
		}
		for range slotCount { // nobody may begin
			slot, err := s.staging.take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer s.staging.give(slot)
		}
		if _, err := s.Fork(ended, "theonlyfork", "forkedlayer", 0); !errors.Is(err, context.Canceled) {
			t.Errorf("Fork for nobody: %v", err)
		}
		if got, err := s.List(); err != nil || slices.Contains(got, "theonlyfork") {
			t.Errorf("layers: %q, %v", got, err)
		}
	})
	testSnapshotFailures(t, opts)
}

// testSnapshotFailures tests exchanges, and what fails or is done by many at once.
func testSnapshotFailures(t *testing.T, opts Options) {
	t.Run("ExchangeGivesASnapshotsContentOrNoneAndKeepsLogs", func(t *testing.T) {
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "rolledlayer", 0)
		writeFile(t, at(l.Fd(), "upper/file"), []byte("early"))
		mustSnapshot(t, s, "rolledlayer", "rolledsnapshot")
		writeFile(t, at(l.Fd(), "upper/file"), []byte("late"))
		logs, err := s.Logs("rolledlayer")
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, at(int(logs.Fd()), "1.log"), []byte("output"))
		logs.Close()
		for _, from := range []string{"rolledsnapshot", "", "rolledsnapshot"} {
			if err := s.Exchange(t.Context(), "rolledlayer", from, 0, atOnce); err != nil {
				t.Fatal(err)
			}
			now, err := s.Open("rolledlayer")
			if err != nil {
				t.Fatal(err)
			}
			defer now.Close()
			if err := now.FreshWork(); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(at(now.Fd(), "upper/file"))
			if from == "" && !errors.Is(err, os.ErrNotExist) || from != "" && string(got) != "early" {
				t.Errorf("after an exchange for %q: %q, %v", from, got, err)
			}
		}
		if logs, err = s.Logs("rolledlayer"); err != nil {
			t.Fatal(err)
		}
		defer logs.Close()
		if got := readFile(t, at(int(logs.Fd()), "1.log")); got != "output" {
			t.Errorf("the log is %q", got)
		}
	})
	t.Run("AllOrNothing", func(t *testing.T) {
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "wholelayer", 0)
		writeFile(t, at(l.Fd(), "upper/file"), []byte("kept"))
		mustSnapshot(t, s, "wholelayer", "wholesnapshot")
		_, again := s.Snapshot(t.Context(), "wholelayer", "wholesnapshot")
		_, taken := s.CreateFrom(t.Context(), "wholelayer", "wholesnapshot", 0)
		_, none := s.Snapshot(t.Context(), "missinglayer", "newsnapshot")
		_, from := s.CreateFrom(t.Context(), "newlayer00", "missingsnapshot", 0)
		_, small := s.CreateFrom(t.Context(), "newlayer00", "wholesnapshot", 1)
		_, bad := s.Snapshot(t.Context(), "wholelayer", "../../escape")
		_, open := s.OpenSnapshot("missingsnapshot")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, late := s.Snapshot(ended, "wholelayer", "newsnapshot")
		for name, c := range map[string]struct {
			err  error
			code fault.Code
		}{
			"Snapshot of an id that exists":     {again, fault.Exists},
			"CreateFrom of an id that exists":   {taken, fault.Exists},
			"Snapshot of nothing":               {none, fault.NotFound},
			"CreateFrom nothing":                {from, fault.NotFound},
			"CreateFrom with a tiny limit":      {small, fault.Invalid},
			"Snapshot as a path":                {bad, fault.Invalid},
			"OpenSnapshot of nothing":           {open, fault.NotFound},
			"Exchange for nothing":              {s.Exchange(t.Context(), "wholelayer", "missingsnapshot", 0, atOnce), fault.NotFound},
			"Exchange of nothing":               {s.Exchange(t.Context(), "missinglayer", "", 0, atOnce), fault.NotFound},
			"Exchange of nothing for something": {s.Exchange(t.Context(), "missinglayer", "wholesnapshot", 0, atOnce), fault.NotFound},
		} {
			if !fault.Is(c.err, c.code) {
				t.Errorf("%s = %v, want %s", name, c.err, c.code)
			}
		}
		if !errors.Is(late, context.Canceled) {
			t.Errorf("Snapshot after the end = %v", late)
		}
		if err := s.RemoveSnapshot("missingsnapshot"); err != nil {
			t.Errorf("RemoveSnapshot of nothing = %v", err)
		}
		layers, err1 := s.List()
		snapshots, err2 := s.Snapshots()
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(layers, "newlayer00") || slices.Contains(snapshots, "newsnapshot") || !slices.Contains(snapshots, "wholesnapshot") {
			t.Errorf("layers %q, snapshots %q", layers, snapshots)
		}
		if left, err := s.staging.names(); err != nil || len(left) > 0 {
			t.Errorf("left in the staging area: %q, %v", left, err)
		}
		if got := readFile(t, at(l.Fd(), "upper/file")); got != "kept" {
			t.Errorf("file = %q", got)
		}
	})
	t.Run("OneOfManyConcurrentCallsWins", func(t *testing.T) {
		s := mustOpen(t, opts)
		mustCreate(t, s, "sourcelayer", 0)
		mustSnapshot(t, s, "sourcelayer", "sourcesnapshot")
		for name, call := range map[string]func() error{
			"Snapshot": func() error { _, err := s.Snapshot(t.Context(), "sourcelayer", "contestedsnap"); return err },
			"CreateFrom": func() error {
				l, err := s.CreateFrom(t.Context(), "contestedcopy", "sourcesnapshot", 0)
				if err == nil {
					l.Close()
				}
				return err
			},
		} {
			var wg sync.WaitGroup
			results := make([]error, 24)
			for i := range results {
				wg.Go(func() { results[i] = call() })
			}
			wg.Wait()
			won := 0
			for _, err := range results {
				if err == nil {
					won++
				} else if !fault.Is(err, fault.Exists) {
					t.Errorf("%s = %v, want exists", name, err)
				}
			}
			if won != 1 {
				t.Errorf("%d calls of %s won, want 1", won, name)
			}
		}
	})
	t.Run("OpenThrowsHalvesAwayAndKeepsSnapshots", func(t *testing.T) {
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "keptlayer", 0)
		writeFile(t, at(l.Fd(), "upper/file"), []byte("kept"))
		mustSnapshot(t, s, "keptlayer", "keptsnapshot")
		if err := s.Remove("keptlayer"); err != nil {
			t.Fatal(err)
		}
		for i := range s.staging.slot {
			if err := os.MkdirAll(at(s.staging.slot[i].dir, "halfmadecopy/upper"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, opts)
		if left, err := s.staging.names(); err != nil || len(left) > 0 {
			t.Errorf("staging holds %q, %v", left, err)
		}
		f, err := s.OpenSnapshot("keptsnapshot")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got := readFile(t, at(int(f.Fd()), "file")); got != "kept" {
			t.Errorf("file = %q", got)
		}
		c := mustCreateFrom(t, s, "keptcopy", "keptsnapshot", 0)
		if got := readFile(t, at(c.Fd(), "upper/file")); got != "kept" {
			t.Errorf("copied file = %q", got)
		}
	})
}

func TestASnapshotAndACopyHaveLimitsAndSizesOfTheirOwn(t *testing.T) {
	needLoop(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	needLimits(t, s)
	l := mustCreate(t, s, "fulllayer", 16*mib)
	if _, err := fill(at(l.Fd(), "upper/big"), 32*mib); !errors.Is(err, unix.EDQUOT) {
		t.Fatal(err)
	}
	size := mustSnapshot(t, s, "fulllayer", "fullsnapshot")
	if size < 14*mib || size > 17*mib {
		t.Errorf("a snapshot of a full disk of 16 MiB holds %d bytes", size)
	}
	c := mustCreateFrom(t, s, "fullcopy", "fullsnapshot", 8*mib)
	if n, err := fill(at(c.Fd(), "upper/more"), 16*mib); !errors.Is(err, unix.EDQUOT) || n < 6*mib || n > 8*mib {
		t.Errorf("the copy took %d bytes and then %v; want EDQUOT at nearly 8 MiB", n, err)
	}
	used, limit, err := s.Usage("fullcopy")
	if err != nil || limit != 8*mib || used > 8*mib || used < 6*mib {
		t.Errorf("Usage = %d, %d, %v; want nearly 8 MiB of 8", used, limit, err)
	}
	if got := mustSnapshot(t, s, "fullcopy", "copysnapshot"); got < size+6*mib || got > size+9*mib {
		t.Errorf("a snapshot of the copy holds %d bytes; the first %d", got, size)
	}
	if got := mustSnapshot(t, s, "copysnapshot", "samesnapshot"); got < size+6*mib || got > size+9*mib {
		t.Errorf("a snapshot of a snapshot holds %d bytes; the first %d", got, size)
	}
	f := mustFork(t, s, "fullfork", "fullcopy", 4*mib)
	if n, err := fill(at(f.Fd(), "upper/most"), 16*mib); !errors.Is(err, unix.EDQUOT) || n < 2*mib || n > 4*mib {
		t.Errorf("the fork took %d bytes and then %v; want EDQUOT at nearly 4 MiB", n, err)
	}
	if got := mustSnapshot(t, s, "fullfork", "forksnapshot"); got < size+8*mib || got > size+13*mib {
		t.Errorf("a snapshot of a fork of the copy holds %d bytes; the first %d", got, size)
	}
	if err := errors.Join(f.Close(), s.Remove("fullfork"), s.RemoveSnapshot("forksnapshot")); err != nil {
		t.Fatal(err)
	}
	// What the snapshot still holds stays counted to who wrote it.
	if err := os.Remove(at(l.Fd(), "upper/big")); err != nil {
		t.Fatal(err)
	}
	if _, err := fill(at(l.Fd(), "upper/again"), 8*mib); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("beside a snapshot of 16 MiB in a limit of 16: %v, want EDQUOT", err)
	}
	for _, id := range []string{"fullsnapshot", "copysnapshot", "samesnapshot"} {
		if err := s.RemoveSnapshot(id); err != nil {
			t.Fatal(err)
		}
	}
	// An open copy would keep what it holds.
	if err := errors.Join(c.Close(), s.Remove("fullcopy")); err != nil {
		t.Fatal(err)
	}
	until(t, "the space comes back", func() bool {
		// A commit wakes who frees what was deleted; by itself it does so each half minute.
		if err := commit(s.top); err != nil {
			t.Fatal(err)
		}
		_, err := fill(at(l.Fd(), "upper/again"), 8*mib)
		return err == nil
	})
}

// A full sandbox must be able to start again, to be snapshotted and to be rolled back.
func TestAFullLayerGetsAFreshWorkDirectory(t *testing.T) {
	needLoop(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	needLimits(t, s)
	l := mustCreate(t, s, "fulllayer", 4*mib)
	if err := os.MkdirAll(at(l.Fd(), "work/index/x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 100_000 {
		if err := os.WriteFile(at(l.Fd(), fmt.Sprintf("upper/%d", i)), make0(1500), 0o600); err != nil {
			if !errors.Is(err, unix.EDQUOT) {
				t.Fatal(err)
			}
			break
		}
	}
	l.fresh.Store(false)
	for range 3 {
		if err := l.FreshWork(); err != nil {
			t.Fatal(err)
		}
		if empty, err := isEmpty(l.Fd(), "work"); err != nil || !empty {
			t.Fatalf("work is not empty: %v", err)
		}
		// As a mount does, which needs room beside.
		if err := os.MkdirAll(at(l.Fd(), "work/index"), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, at(l.Fd(), "work/index/x"), nil)
		l.fresh.Store(false)
		if err := s.Resize("fulllayer", 4*mib); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at(l.Fd(), "upper/more"), make0(64<<10), 0o600); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("a full layer took more: %v", err)
	}
	mustSnapshot(t, s, "fulllayer", "fullsnapshot")
	mustCreateFrom(t, s, "fullcopy", "fullsnapshot", 4*mib)
	if err := s.Exchange(t.Context(), "fulllayer", "fullsnapshot", 4*mib, atOnce); err != nil {
		t.Fatal(err)
	}
}

// What its snapshots hold stays counted to a subvolume: as another layer it would
// begin with less than its limit.
func TestALayerWithSnapshotsIsNotEmptiedForTheNext(t *testing.T) {
	needLoop(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	l := mustCreate(t, s, "snappedlayer", 0)
	mustCreate(t, s, "otherlayer", 0)
	writeFile(t, at(l.Fd(), "upper/file"), make0(1<<20))
	mustSnapshot(t, s, "snappedlayer", "thesnapshot")
	mustCreateFrom(t, s, "copiedlayer", "thesnapshot", 0)
	for _, id := range []string{"snappedlayer", "otherlayer", "copiedlayer"} {
		if err := s.Remove(id); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.RemoveSnapshot("thesnapshot"); err != nil {
		t.Fatal(err)
	}
	if err := s.trash.drain(); err != nil {
		t.Fatal(err)
	}
	spares, err := names(s.trash.spares.dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(spares) != 1 || spares[0][:10] != "otherlayer" {
		t.Errorf("spares are %q, want that of otherlayer alone", spares)
	}
}

func TestSnapshotsCountAsDataOfAPlainStore(t *testing.T) {
	needRoot(t)
	for name, fill := range map[string]func(s *Store){
		"snapshot": func(s *Store) {
			mustCreate(t, s, "thelayer", 0)
			mustSnapshot(t, s, "thelayer", "thesnapshot")
			if err := s.Remove("thelayer"); err != nil {
				t.Fatal(err)
			}
		},
		"volume": func(s *Store) {
			if err := s.CreateVolume("thevolume", 0); err != nil {
				t.Fatal(err)
			}
		},
	} {
		dir := t.TempDir()
		s := mustOpen(t, Options{Dir: dir, Kind: Plain})
		fill(s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), Options{Dir: dir, Kind: Loop, SizeBytes: minLoopSize}); !fault.Is(err, fault.State) {
			t.Errorf("Open over a %s = %v, want state", name, err)
		}
	}
}

// Quotas count what a tree takes when it is committed, and that is after the files were made.
func TestTheSizeOfASnapshotCountsItsTree(t *testing.T) {
	needLoop(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	needLimits(t, s)
	l := mustCreate(t, s, "manyfiles", 0)
	for i := range 10_000 {
		writeFile(t, at(l.Fd(), fmt.Sprintf("upper/%d", i)), nil)
	}
	size, err := s.Snapshot(t.Context(), "manyfiles", "manysnapshot")
	if err != nil || size < 1<<20 {
		t.Errorf("10,000 empty files take %d bytes, %v", size, err)
	}
	fd, err := s.openSnapshot("manysnapshot")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if kept := s.holds(fd, false); kept != size {
		t.Errorf("with it %d bytes are noted, want %d", kept, size)
	}
	f := mustFork(t, s, "manycopies", "manyfiles", 0)
	if kept := s.holds(f.fd, true); kept < size || kept > size+1<<20 {
		t.Errorf("a fork holds %d bytes, want some %d", kept, size)
	}
}
