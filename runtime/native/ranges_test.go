// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// What one sandbox had of a range's own, the next must not get: sockets may be
// left in a network namespace, and a /dev can be told apart by what is locked in it.
func TestARangeThatIsGivenBackComesWithNothingOfItsLastSandbox(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes user namespaces with mapped ranges")
	}
	r := newRanges(t.TempDir())
	defer r.close()
	first, err := r.take()
	if err != nil {
		t.Fatal(err)
	}
	if first.net == nil || first.dev == nil {
		t.Fatalf("a range came without a network namespace or a /dev: %+v", first)
	}
	// Held open, so that the kernel cannot give the same numbers again.
	net, dev := dup(t, first.net), dup(t, first.dev)
	r.give(first)
	if _, err := unix.FcntlInt(first.net.Fd(), unix.F_GETFD, 0); err == nil {
		t.Error("the used network namespace is still open")
	}
	second, err := r.take()
	if err != nil {
		t.Fatal(err)
	}
	defer r.give(second)
	if second.base != first.base {
		t.Fatalf("got range %d, want %d again", second.base, first.base)
	}
	if same(t, net, second.net) {
		t.Error("the network namespace came again")
	}
	if same(t, dev, second.dev) {
		t.Error("the /dev came again")
	}
}

func TestNoTwoSandboxesShareARange(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes user namespaces with mapped ranges")
	}
	r := newRanges(t.TempDir())
	defer r.close()
	seen := map[uint32]bool{}
	for range 20 {
		u, err := r.take()
		if err != nil {
			t.Fatal(err)
		}
		defer r.give(u)
		if seen[u.base] {
			t.Errorf("range %d was given twice", u.base)
		}
		seen[u.base] = true
	}
}

func dup(t *testing.T, f *os.File) *os.File {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := os.NewFile(uintptr(fd), f.Name())
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func same(t *testing.T, a, b *os.File) bool {
	t.Helper()
	x, err := a.Stat()
	if err != nil {
		t.Fatal(err)
	}
	y, err := b.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(x, y)
}
