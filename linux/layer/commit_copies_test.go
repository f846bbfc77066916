// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// generations returns the transactions that wrote the subvolume name in dir first and last, as
// of the last commit.
func generations(t *testing.T, dir int, name string) (first, last uint64) {
	t.Helper()
	fd, err := openDir(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var info [unsafe.Sizeof(subvolInfo{})]byte
	if err := ioctl(fd, btrfsSubvolInfo, unsafe.Pointer(&info)); err != nil {
		t.Fatal(err)
	}
	const generation, otransid = 8 + 256 + 2*8, 8 + 256 + 4*8 + 3*16 + 8
	return binary.LittleEndian.Uint64(info[otransid:]), binary.LittleEndian.Uint64(info[generation:])
}

// touched reports whether it was written to since it was made.
func touched(t *testing.T, s *Store, dir int, name string) bool {
	t.Helper()
	if err := commit(s.top); err != nil {
		t.Fatal(err)
	}
	first, last := generations(t, dir, name)
	return last > first
}

// The first write to a copy of a large tree costs as much as a snapshot of it, and whoever
// makes the next snapshot in the store waits for it.
func TestASnapshotAndTheDiskOfARollbackAreNotWrittenTo(t *testing.T) {
	needLoop(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	l := mustCreate(t, s, "firstlayer", 0)
	writeFile(t, at(l.Fd(), "upper/file"), make0(1<<20))
	mustSnapshot(t, s, "firstlayer", "firstsnapshot")
	slot := s.snapshots.at("firstsnapshot").dir
	if touched(t, s, slot, "firstsnapshot") {
		t.Error("a snapshot was written to")
	}
	if err := s.Exchange(t.Context(), "firstlayer", "firstsnapshot", 0, atOnce); err != nil {
		t.Fatal(err)
	}
	if touched(t, s, s.layers, "firstlayer") {
		t.Error("the new content of a layer was written to")
	}
	now, err := s.Open("firstlayer")
	if err != nil {
		t.Fatal(err)
	}
	defer now.Close()
	if err := now.FreshWork(); err != nil {
		t.Fatal(err)
	}
	if !touched(t, s, s.layers, "firstlayer") {
		t.Error("a new work directory is no write: the test sees none")
	}
}

func TestSettleCommitsWhatALargeCopyLeft(t *testing.T) {
	needLoop(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	needLimits(t, s)
	small := mustCreate(t, s, "smalllayer", 0)
	writeFile(t, at(small.Fd(), "upper/file"), make0(1<<20))
	if err := mustFork(t, s, "smallcopy", "smalllayer", 0).FreshWork(); err != nil {
		t.Fatal(err)
	}
	s.CommitCopies()
	s.committing.mu.Lock()
	if s.committing.running {
		t.Error("a small copy is worth a commit")
	}
	s.committing.mu.Unlock()

	large := mustCreate(t, s, "largelayer", 0)
	writeFile(t, at(large.Fd(), "upper/file"), make0(commitBytes))
	if err := mustFork(t, s, "largecopy", "largelayer", 0).FreshWork(); err != nil {
		t.Fatal(err)
	}
	_, before := generations(t, s.layers, "largecopy")
	s.CommitCopies()
	until(t, "what the copy left is committed", func() bool {
		_, now := generations(t, s.layers, "largecopy")
		return now > before
	})
}
