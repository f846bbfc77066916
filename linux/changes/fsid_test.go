// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/changes"
)

// needOwnIDs is for tests with several overlays on one file system.
func needOwnIDs(t *testing.T) {
	t.Helper()
	skiptest.WithoutRoot(t, "it mounts an overlay")
	if err := changes.CheckIDs(t.TempDir()); err != nil {
		t.Skipf("overlays have no file system ids of their own (Linux 6.6): %v", err)
	}
}

// namesTheRemoved reports whether the kernel says which directory was removed, beside
// where it was. It does since Linux 6.13, and 6.12.10 and 6.6.72.
func namesTheRemoved(t *testing.T) bool {
	t.Helper()
	o := newOverlay(t, t.TempDir(), nil)
	g := newGroup(t, changes.Options{})
	s := add(t, g, o)
	must(t, os.Mkdir(o.ws+"/d", 0o755))
	tr := track(t, s)
	defer tr.Cancel()
	must(t, os.Remove(o.ws+"/d"))
	named, n := g.Named(unix.FAN_DELETE)
	if n != 1 {
		t.Fatalf("got %d records of a removal, want one", n)
	}
	return named == 1
}

// What CheckIDs says of a directory is what comes of two sandboxes in it, and where they
// cannot be told apart the second is refused: neither sees the other's files.
func TestCheckIDs(t *testing.T) {
	g := newGroup(t, changes.Options{})
	base := t.TempDir()
	dir := filepath.Join(base, "a,b:c=d") // what separates options, too
	must(t, os.Mkdir(dir, 0o755))
	err := changes.CheckIDs(dir)
	if left, e := os.ReadDir(dir); e != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, e)
	}
	add(t, g, newOverlay(t, filepath.Join(base, "one"), nil))
	second := newOverlay(t, filepath.Join(base, "two"), nil)
	if err == nil {
		add(t, g, second)
	} else {
		wantCode(t, err, fault.Unsupported)
		if fault.As(err).Remedy == "" {
			t.Errorf("%v has no remedy", err)
		}
		_, err := g.Add(second.mount, nil)
		wantCode(t, err, fault.Conflict)
	}
	wantCode(t, changes.CheckIDs(filepath.Join(base, "missing")), fault.Unavailable)
	// Where there are no xattrs to keep an id in, no kernel has one for each.
	proc := "/proc/self"
	if err := changes.CheckIDs(proc); err == nil {
		t.Errorf("%s: an overlay can be told apart where none can be", proc)
	}
}
