// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Who sends an archive slowly, or not at all, holds up other imports and nobody else.
func TestImportsThatHangLeaveRoomForCopies(t *testing.T) {
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
	until(t, "as many archives as may be are read", func() bool { return begun.Load() >= maxImports })
	<-time.After(100 * time.Millisecond) // for the others, which are to wait
	if n := begun.Load(); n != maxImports {
		t.Errorf("%d archives are read at once, want %d", n, maxImports)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	l, err := s.CreateFrom(ctx, "copiedlayer", "sourcesnapshot", 0)
	if err != nil {
		t.Fatalf("CreateFrom beside imports that hang: %v", err)
	}
	_ = l.Close()
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	body := readFunc(func() { t.Error("an archive is read before its turn") })
	if _, err := s.Import(soon, "waitingimport", body, manyBytes); err != context.DeadlineExceeded {
		t.Errorf("an import that waits = %v, want that its time is over", err)
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
			for n, dir := range []int{s.trash.dir, s.trash.grave} {
				names, err := names(dir)
				empty[n] = err == nil && len(names) == 0
			}
			return empty[0] && empty[1]
		})
		close(killed)
		wg.Wait()
	})
}
