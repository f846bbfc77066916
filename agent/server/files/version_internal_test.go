// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A program that writes over a file the moment after its version was told, with as many bytes, gives it another one.
func TestAVersionIsToldWhenNoWriteCanShareIt(t *testing.T) {
	for name, dir := range map[string]string{"Temp": t.TempDir(), "Memory": "/dev/shm"} {
		t.Run(name, func(t *testing.T) {
			f, err := os.CreateTemp(dir, "version")
			if err != nil {
				t.Fatal(err)
			}
			defer os.Remove(f.Name())
			defer f.Close()
			look := func(st *unix.Stat_t) error { return unix.Fstat(int(f.Fd()), st) }
			seen := make(map[string]int)
			for i := range 300 {
				if _, err := f.WriteAt([]byte{byte(i), byte(i >> 8)}, 0); err != nil {
					t.Fatal(err)
				}
				var st unix.Stat_t
				if err := look(&st); err != nil {
					t.Fatal(err)
				}
				v, err := stableVersion(&st, look)
				if err != nil || len(v) != 32 {
					t.Fatalf("got %q, %v", v, err)
				}
				if before, is := seen[v]; is {
					t.Fatalf("writes %d and %d have the version %s", before, i, v)
				}
				seen[v] = i
				if again := versionOf(&st); again != v {
					t.Fatalf("got %s, and without a write %s", v, again)
				}
			}
		})
	}
}

// A file whose last change lies in the future, or that changes all the time, has no version that it could have again.
func TestAFileThatIsNotStableHasAVersionOnce(t *testing.T) {
	ahead := time.Now().Add(time.Hour)
	st := unix.Stat_t{Mode: unix.S_IFREG, Ctim: unix.NsecToTimespec(ahead.UnixNano() | 1)}
	looks := 0
	look := func(*unix.Stat_t) error { looks++; return nil }
	a, err := stableVersion(&st, look)
	if err != nil {
		t.Fatal(err)
	}
	b, err := stableVersion(&st, look)
	if err != nil || a == b || a == versionOf(&st) || looks > 100 {
		t.Errorf("got %s and %s after %d looks, %v", a, b, looks, err)
	}
	st.Ctim = unix.NsecToTimespec(time.Now().Truncate(time.Second).UnixNano()) // as file systems of whole seconds have it
	if stable(&st) {
		t.Error("a change within this second is stable, though another may come in it")
	}
}

func TestVersionsAreOfRegularFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("x", filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".", "l"} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, name), &st); err != nil {
			t.Fatal(err)
		}
		if v, err := stableVersion(&st, func(*unix.Stat_t) error { return nil }); v != "" || err != nil {
			t.Errorf("%s: got %q, %v", name, v, err)
		}
	}
}
