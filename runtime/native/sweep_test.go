// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/leaktest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// What an earlier version made before anybody asked for it goes with its server's end: an
// instance by the mark beside its state, a disk that a crash of the host left by its own.
func TestWhatAnEarlierVersionMadeAheadIsSwept(t *testing.T) {
	needRoot(t)
	root, dir := imagetest.Python(t).Root, trueDir(t)
	d := open(t, dir, "")
	ids := []sandbox.ID{sandbox.NewID(), sandbox.NewID(), sandbox.NewID()}
	ahead, crashed, kept := ids[0], ids[1], ids[2]
	for _, id := range ids {
		i, err := d.Create(t.Context(), specOf(id, root))
		if err != nil {
			t.Fatal(err)
		}
		if id == crashed {
			if err := i.Stop(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	files := filepath.Join(native.InstancesDir(dir, native.PathNamespace(dir)), string(ahead))
	mark := files + ".ahead"
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.Readlink(files + ".state")
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(text, &pid); err != nil {
		t.Fatal(err)
	}
	d.MarkAhead(t, ahead)
	d.MarkAhead(t, crashed)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	d = open(t, dir, "")
	if _, err := unix.Wait4(pid, nil, 0, nil); err != nil { // it is a child of this process, as it is of no next server
		t.Error(err)
	}
	handles, err := d.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(handles) != 2 {
		t.Errorf("the next server finds %v, want %s and %s", handles, crashed, kept)
	}
	for _, h := range handles {
		if nobodys, err := d.Unrecorded(h.ID); err != nil || nobodys != (h.ID == crashed) {
			t.Errorf("%s is nobody's: %v, %v", h.ID, nobodys, err)
		}
		i, err := d.Open(t.Context(), runtime.Handle{ID: h.ID})
		if err != nil {
			t.Fatal(err)
		}
		if h.ID == kept {
			if got := output(t, i, "echo", "hello"); got != "hello" {
				t.Errorf("inside: %q", got)
			}
		}
		if err := i.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	nothing(t, leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}})
	if _, err := os.Stat(mark); !os.IsNotExist(err) {
		t.Errorf("the mark is left: %v", err)
	}
}
