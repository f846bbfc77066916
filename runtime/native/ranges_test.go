// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/spawn"
)

// What one sandbox had of a range's own, the next must not get: sockets may be
// left in a network namespace, and a /dev can be told apart by what is locked in it.
func TestARangeThatIsGivenBackComesWithNothingOfItsLastSandbox(t *testing.T) {
	skiptest.WithoutRoot(t, "it makes user namespaces with mapped ranges")
	r := newTestRanges(t, new(inflight))
	defer r.close()
	first, err := r.take()
	if err != nil {
		t.Fatal(err)
	}
	if first.kit == nil || first.kit.Net == nil || first.kit.Dev == nil || first.kit.Sys == nil {
		t.Fatalf("a range came without all that it needs: %+v", first)
	}
	// Held open, so that the kernel cannot give the same numbers again.
	used := first.kit.Net
	net, dev, sys := dup(t, first.kit.Net), dup(t, first.kit.Dev), dup(t, first.kit.Sys)
	r.give(first)
	if _, err := unix.FcntlInt(used.Fd(), unix.F_GETFD, 0); err == nil {
		t.Error("the used network namespace is still open")
	}
	second, err := r.take()
	if err != nil {
		t.Fatal(err)
	}
	defer r.give(second)
	if second.Base != first.Base {
		t.Fatalf("got range %d, want %d again", second.Base, first.Base)
	}
	if same(t, net, second.kit.Net) {
		t.Error("the network namespace came again")
	}
	if same(t, dev, second.kit.Dev) {
		t.Error("the /dev came again")
	}
	if same(t, sys, second.kit.Sys) {
		t.Error("the /sys came again")
	}
}

// newTestRanges makes ranges with a mount namespace of their own.
func newTestRanges(t *testing.T, c *inflight) *ranges {
	t.Helper()
	mounts, err := bareMounts(spawn.Fastest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mounts.Close() })
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRanges(t.TempDir(), program, mounts, c, false, true, spawn.Fastest)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What is made ahead takes the processor from whoever begins a sandbox just then.
func TestRangesAreMadeAheadWhenNothingGoesOn(t *testing.T) {
	skiptest.WithoutRoot(t, "it makes user namespaces with mapped ranges")
	c := new(inflight)
	r := newTestRanges(t, c)
	defer r.close()
	ends := c.begin()
	if wait := r.fill(t.Context()); wait == 0 || len(r.ready) != fewReady {
		t.Fatalf("%d are ready while a sandbox begins, and the next look is in %v; want %d, and one later", len(r.ready), wait, fewReady)
	}
	free, err := r.free.Take()
	if err != nil {
		t.Fatal(err)
	}
	r.give(uidRange{Range: free})
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

	// One that was given back when none was missing is no reason to make one during a create.
	if free, err = r.free.Take(); err != nil {
		t.Fatal(err)
	}
	r.give(uidRange{Range: free})
	r.fill(t.Context())
	defer c.begin()()
	u, err := r.take()
	if err != nil {
		t.Fatal(err)
	}
	defer r.give(u)
	if r.fill(t.Context()); len(r.ready) != haveReady-1 {
		t.Errorf("%d are ready while a sandbox begins, want %d: that one was made then", len(r.ready), haveReady-1)
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
