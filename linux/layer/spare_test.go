// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"errors"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
)

// A layer that is made of a removed one shows nothing of it, and has its own limit.
func TestASmallLayerIsEmptiedForTheNextAndABigOneIsNot(t *testing.T) {
	skiptest.WithoutRoot(t, "it mounts a btrfs")
	if _, err := findMkfs(); err != nil {
		t.Skipf("needs mkfs.btrfs: %v", err)
	}
	s, err := Open(t.Context(), withAttach(Options{Dir: filepath.Join(t.TempDir(), "s"), Kind: Loop}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	needLimits(t, s)
	make := func(id string, limit int64) *Layer {
		t.Helper()
		l, err := s.Create(id, limit)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	inode := func(l *Layer) uint64 {
		t.Helper()
		id, err := subvolumeID(l.Fd())
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	write := func(l *Layer, name string, size int) error {
		fd, err := unix.Openat(l.Fd(), "upper/"+name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for chunk := 1 << 16; size > 0; size -= chunk {
			if _, err := unix.Write(fd, make0(min(chunk, size))); err != nil {
				return err
			}
		}
		return unix.Fsync(fd)
	}
	remove := func(l *Layer) {
		t.Helper()
		if err := errors.Join(l.Close(), s.Remove(l.ID())); err != nil {
			t.Fatal(err)
		}
		if err := s.trash.drain(); err != nil {
			t.Fatal(err)
		}
	}

	small := make("small0000000", 64<<20)
	first := inode(small)
	if err := write(small, "secret", 1000); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr("/proc/self/fd/"+strconv.Itoa(small.Fd())+"/upper", "trusted.overlay.origin", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	remove(small)

	next := make("next00000000", 2<<20)
	if got := inode(next); got != first {
		t.Errorf("the subvolume is %d, want %d: it was not reused", got, first)
	}
	if left, err := names(next.Fd()); err != nil || len(left) != 2 {
		t.Errorf("the layer holds %v, %v; want upper and work", left, err)
	}
	if empty, err := isEmpty(next.Fd(), "upper"); err != nil || !empty {
		t.Errorf("upper is not empty: %v", err)
	}
	if n, err := unix.Getxattr("/proc/self/fd/"+strconv.Itoa(next.Fd())+"/upper", "trusted.overlay.origin", nil); err == nil {
		t.Errorf("an attribute of %d bytes is left", n)
	}
	if err := write(next, "big", 16<<20); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("16 MiB into a limit of 2: got %v, want EDQUOT", err)
	}
	if err := unix.Unlinkat(next.Fd(), "upper/big", 0); err != nil {
		t.Fatal(err)
	}
	remove(next)

	big := make("big000000000", 64<<20)
	second := inode(big)
	if err := write(big, "big", 2*maxSpareBytes); err != nil {
		t.Fatal(err)
	}
	remove(big)
	if l := make("last00000000", 64<<20); inode(l) == second {
		t.Error("a subvolume with much in it was emptied instead of destroyed")
	} else if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func make0(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}
