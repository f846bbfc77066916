// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/linux/layer"
	"sandpit.dev/sandbox"
)

// upperOf finds what a layer or a snapshot of a plain store holds.
func upperOf(t *testing.T, dir string, id sandbox.ID) string {
	t.Helper()
	var found []string
	for _, where := range []string{"layers", "snapshots/*"} { // snapshots are in slots
		some, err := filepath.Glob(filepath.Join(dir, "layers", where, string(id), "upper"))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, some...)
	}
	if len(found) != 1 {
		t.Fatalf("what %s holds is at %q", id, found)
	}
	return found[0]
}

// A link where a sandbox has a file system of its own is the fault of what the disk holds: an older
// server imported it. It is not the host's.
func TestALinkAtAMountPointIsTheDisksFault(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	d := open(t, dir, layer.Plain)
	defer func() { _ = d.Close() }()
	root := imagetest.Python(t).Root
	i, err := d.Create(t.Context(), specOf(sandbox.NewID(), root))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = i.Remove(t.Context()) }()
	mine := i.Handle().ID
	want := func(what, at string, err error) {
		t.Helper()
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.Conflict || !strings.Contains(f.Message, at+" is a link or a file") || strings.Contains(f.Remedy, "doctor") {
			t.Errorf("%s with a link at %s: got %v, want a conflict that names it", what, at, err)
		}
	}
	for n, name := range []string{"proc", "dev", "sys"} {
		snapshot := sandbox.NewID()
		if _, err := d.Snapshot(t.Context(), mine, snapshot); err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(upperOf(t, dir, snapshot), name)
		if err := os.RemoveAll(at); err != nil { // it was made where the image has none
			t.Fatal(err)
		}
		if n%2 == 0 {
			err = os.Symlink("tmp", at)
		} else {
			err = os.WriteFile(at, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		spec := specOf(sandbox.NewID(), root)
		spec.From = snapshot
		_, err := d.Create(t.Context(), spec)
		want("Create", "/"+name, err)
		spec.From = ""
		again, err := d.Create(t.Context(), spec) // nothing of the first one is left
		if err != nil {
			t.Fatalf("Create without it: %v", err)
		}
		if err := again.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if err := d.Rollback(t.Context(), spec.ID, snapshot, spec.Limits); err != nil {
			t.Fatal(err)
		}
		want("Start", "/"+name, again.Start(t.Context(), spec))
		if err := os.Remove(filepath.Join(upperOf(t, dir, spec.ID), name)); err != nil {
			t.Fatal(err)
		}
		if err := again.Start(t.Context(), spec); err != nil {
			t.Errorf("Start without it: %v", err)
		} else if got := output(t, again, "cat", "/proc/self/comm"); got != "cat" {
			t.Errorf("inside: got %q", got)
		}
		if err := again.Remove(t.Context()); err != nil {
			t.Error(err)
		}
		if err := d.RemoveSnapshot(t.Context(), snapshot); err != nil {
			t.Error(err)
		}
	}
}
