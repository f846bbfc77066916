// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"archive/tar"
	"context"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Who sends an archive slowly, or not at all, holds up nobody: no copy, and no other import.
func TestImportsThatHangHoldUpNobody(t *testing.T) {
	needRoot(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Plain})
	mustCreate(t, s, "sourcelayer", 0)
	mustSnapshot(t, s, "sourcelayer", "sourcesnapshot")
	release, begun := make(chan struct{}), atomic.Int32{}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(release)
	for n := range slotCount {
		var once sync.Once
		hang := readFunc(func() {
			once.Do(func() { begun.Add(1) })
			<-release
		})
		wg.Go(func() {
			if _, err := s.Import(context.Background(), "hangingimport"+string(rune('a'+n)), hang, manyBytes); err == nil {
				t.Error("nothing was imported")
			}
		})
	}
	until(t, "all of the archives are read", func() bool { return begun.Load() == slotCount })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := s.CreateFrom(ctx, "copiedlayer", "sourcesnapshot", 0)
	if err != nil {
		t.Fatalf("CreateFrom beside imports that hang: %v", err)
	}
	_ = l.Close()
	if _, err := s.Import(ctx, "wholeimport", pack(t, member(tar.TypeDir, "d")), manyBytes); err != nil {
		t.Errorf("an import beside those that hang: %v", err)
	}
}

// What an import costs in time is taken from nobody who waits for an answer.
func TestImportYields(t *testing.T) {
	needRoot(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Plain})
	nice := func() int {
		raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err != nil {
			t.Error(err)
		}
		return 20 - raw
	}
	was, inside := nice(), -1
	r := io.MultiReader(readFunc(func() { inside = nice() }), pack(t, member(tar.TypeDir, "d")))
	if _, err := s.Import(t.Context(), "niceimport", r, manyBytes); err != nil {
		t.Fatal(err)
	}
	if want := min(19, was+importNice); inside != want {
		t.Errorf("an import works at nice %d, want %d", inside, want)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if now := nice(); now != was {
		t.Errorf("its thread is left at nice %d, was %d", now, was)
	}
}

func TestOpenThrowsHalfAnImportAway(t *testing.T) {
	eachKind(t, func(t *testing.T, opts Options) {
		s := mustOpen(t, opts)
		killed := make(chan struct{})
		var wg sync.WaitGroup
		begun := make(chan struct{})
		wg.Go(func() {
			_, _ = s.Import(context.Background(), "halfanimport", readFunc(sync.OnceFunc(func() { close(begun); <-killed })), manyBytes)
		})
		<-begun
		left, err := s.staging.names()
		if err != nil || len(left) != 1 {
			t.Fatalf("staging holds %q, %v; want the import", left, err)
		}
		if err := s.sweep(); err != nil { // as the Open of the next server does
			t.Fatal(err)
		}
		if left, err := s.staging.names(); err != nil || len(left) > 0 {
			t.Errorf("staging holds %q, %v", left, err)
		}
		s.trash.kick()
		until(t, "the half is deleted", func() bool {
			var empty [2]bool
			for n, dir := range []int{s.trash.dir, s.trash.deleting} {
				names, err := names(dir)
				empty[n] = err == nil && len(names) == 0
			}
			return empty[0] && empty[1]
		})
		close(killed)
		wg.Wait()
	})
}
