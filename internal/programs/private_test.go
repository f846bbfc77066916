// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
)

func TestPrivate(t *testing.T) {
	skiptest.WithoutRoot(t, "it makes namespaces")
	const self = "/proc/self/ns/mnt" // of the process's first thread
	link := func(path string) string {
		t.Helper()
		s, err := os.Readlink(path)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := link(self)

	// However many there are, none takes the first thread. Each start is where that
	// thread may be picked.
	dir := t.TempDir()
	for range 50 {
		p, err := NewPrivate()
		if err != nil {
			t.Fatal(err)
		}
		err = p.Do(func() error {
			if unix.Gettid() == unix.Getpid() {
				t.Error("got the process's first thread")
			}
			return unix.Mount("tmpfs", dir, "tmpfs", 0, "")
		})
		if err != nil {
			t.Error(err)
		}
		if after := link(self); after != before {
			t.Fatalf("the process moved from %s to %s", before, after)
		}
		p.Close()
		runtime.Gosched()
	}
	if err := os.Remove(dir); err != nil {
		t.Errorf("what was mounted is seen outside: %v", err)
	}
}
