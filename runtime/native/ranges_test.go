// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What one sandbox had of a range's own, the next must not get: sockets may be
// left in a network namespace, and a /dev can be told apart by what is locked in it.
func TestARangeThatIsGivenBackComesWithNothingOfItsLastSandbox(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes user namespaces with mapped ranges")
	}
	r := newRanges(t.TempDir(), new(calm))
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
	r := newRanges(t.TempDir(), new(calm))
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

// What is made ahead takes the processor from whoever begins a sandbox just then.
func TestRangesAreMadeAheadWhenNothingGoesOn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes user namespaces with mapped ranges")
	}
	c := new(calm)
	r := newRanges(t.TempDir(), c)
	defer r.close()
	ends := c.begin()
	if wait := r.fill(t.Context()); wait == 0 || len(r.ready) != fewReady {
		t.Fatalf("%d are ready while a sandbox begins, and the next look is in %v; want %d, and one later", len(r.ready), wait, fewReady)
	}
	u, err := r.mapped()
	if err != nil {
		t.Fatal(err)
	}
	r.give(u)
	if r.fill(t.Context()); len(r.ready) != fewReady+1 {
		t.Errorf("%d are ready after one was given back, want %d", len(r.ready), fewReady+1)
	}
	ends()
	for len(r.ready) < haveReady {
		wait := r.fill(t.Context())
		if wait > rangesQuiet {
			t.Fatalf("the next look is in %v, want %v at most", wait, rangesQuiet)
		}
		<-time.After(wait)
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
