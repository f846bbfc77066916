// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dir

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/blob"
	"sandpit.dev/blob/blobtest"
	"sandpit.dev/fault"
)

func TestDirectory(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return New(filepath.Join(t.TempDir(), "made", "when used")) })
}

// Somebody else who may write to the directory leads the server nowhere, and keeps it from nothing.
func TestWhatIsPlantedInTheDirectoryLeadsNowhere(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := New(dir)
	for _, name := range []string{"a" + suffix, "b" + partial} {
		if err := os.Symlink(outside, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"+suffix), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "pipe"} {
		if r, err := s.Open(t.Context(), name); err == nil {
			data, _ := io.ReadAll(r)
			t.Errorf("%s was read: %q", name, data)
		} else if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"a", "b"} {
		if err := s.Put(t.Context(), name, strings.NewReader("new")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "secret" {
		t.Errorf("the file outside: %q, %v", data, err)
	}
}

func TestAFullDiskIsToldAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a file system of its own cannot be mounted: needs root (%v)", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	s := New(dir)
	err := s.Put(t.Context(), "one", strings.NewReader(strings.Repeat("x", 4<<20)))
	if f := fault.As(err); f.Code != fault.Full || f.Disk != fault.HostDisk || f.Remedy == "" || !strings.Contains(f.Message, dir) {
		t.Errorf("a full disk: %#v", f)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
		t.Errorf("left: %v, %v", list, err)
	}
	if err := s.Put(t.Context(), "one", strings.NewReader("fits")); err != nil {
		t.Errorf("what fits: %v", err)
	}
}
