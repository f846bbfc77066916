// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWhatWasMadeAfterTheLastRecords(t *testing.T) {
	eachKind(t, func(t *testing.T, opts Options) {
		s := mustOpen(t, opts)
		holds := func(want map[string]bool) {
			t.Helper()
			for id, want := range want {
				if got, err := s.Unrecorded(id); err != nil || got != want {
					t.Errorf("%s is unrecorded: %v, %v, want %v", id, got, err, want)
				}
			}
		}
		closeStore := func() {
			t.Helper()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		_ = mustCreate(t, s, "oldlayer0000", 0).Close()
		mustSnapshot(t, s, "oldlayer0000", "oldsnap00000")
		if err := s.CreateVolume("oldvolume000", 0); err != nil {
			t.Fatal(err)
		}
		holds(map[string]bool{"oldlayer0000": false, "oldsnap00000": false, "oldvolume000": false, "none00000000": false})
		closeStore()

		// A store without the mark says so of nothing: it is of an earlier version.
		s = mustOpen(t, opts)
		holds(map[string]bool{"oldlayer0000": false, "oldsnap00000": false, "oldvolume000": false})
		if err := s.MarkRecorded(time.Now().Add(2 * recordedSlack)); err != nil {
			t.Fatal(err)
		}
		mark := s.persistence.last
		if err := s.MarkRecorded(time.Now().Add(-time.Hour)); err != nil || s.persistence.last != mark {
			t.Errorf("the mark went back by %s, %v", time.Duration(mark-s.persistence.last), err)
		}
		until(t, "the clock of files is past the mark", func() bool {
			probe := filepath.Join(t.TempDir(), "probe")
			writeFile(t, probe, nil)
			info, err := os.Stat(probe)
			return err == nil && info.ModTime().UnixNano() > mark
		})
		_ = mustCreate(t, s, "newlayer0000", 0).Close()
		mustSnapshot(t, s, "oldlayer0000", "newsnap00000")
		if err := s.CreateVolume("newvolume000", 0); err != nil {
			t.Fatal(err)
		}
		closeStore()

		s = mustOpen(t, opts)
		for range 2 {
			holds(map[string]bool{"oldlayer0000": false, "oldsnap00000": false, "oldvolume000": false})
			holds(map[string]bool{"newlayer0000": true, "newsnap00000": true, "newvolume000": true})
			// It is of the servers before this one.
			if err := s.MarkRecorded(time.Now().Add(2 * recordedSlack)); err != nil {
				t.Fatal(err)
			}
		}
		closeStore()
		s = mustOpen(t, opts)
		holds(map[string]bool{"newlayer0000": false, "newsnap00000": false, "newvolume000": false})
	})
}

func TestPersistCommitsWhatWasMade(t *testing.T) {
	needLoop(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	// The last transaction, as the file says that the store is in.
	committed := func() uint64 {
		t.Helper()
		f, err := os.Open(filepath.Join(s.dir, loopFile))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		const superblock, generation = 64 << 10, 72
		var b [8]byte
		if _, err := f.ReadAt(b[:], superblock+generation); err != nil {
			t.Fatal(err)
		}
		return binary.LittleEndian.Uint64(b[:])
	}
	var major, minor int
	if _, err := fmt.Sscanf(release(), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	lazy := major > 6 || major == 6 && minor >= 6 // earlier kernels commit each subvolume as they make it
	for _, id := range []string{"firstlayer00", "secondlayer0"} {
		_ = mustCreate(t, s, id, 0).Close()
		made, _ := generations(t, s.layers, id)
		if last := committed(); last >= made && lazy {
			t.Errorf("%s, of transaction %d, is committed with %d already", id, made, last)
		}
		if !s.persistence.pending() {
			t.Errorf("%s is not known to have been made", id)
		}
		if err := s.Persist(); err != nil {
			t.Fatal(err)
		}
		last := committed()
		if last < made || s.persistence.pending() {
			t.Errorf("%s, of transaction %d, is not committed with %d", id, made, last)
		}
		if err := s.Persist(); err != nil || committed() != last {
			t.Errorf("nothing was made, and %d is committed after %d, %v", committed(), last, err)
		}
	}
}
