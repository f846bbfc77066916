// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestInspect(t *testing.T) {
	needLoop(t)
	nothingLeft(t)
	dir := filepath.Join(t.TempDir(), "store")
	look := func(mend bool) []Finding {
		t.Helper()
		found, err := Inspect(t.Context(), dir, mend)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := look(true); len(found) != 0 {
		t.Errorf("where there is no store: %+v", found)
	}
	opts := Options{Dir: dir, Kind: Loop, SizeBytes: minLoopSize}
	s := mustOpen(t, opts)
	l := mustCreate(t, s, "heldlayer", 0)
	clone := cloneOf(t, l.Fd())
	device := s.Info().Device
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// A sandbox goes on: its store is in use, and nothing is wrong with that.
	if found := look(true); len(found) != 0 {
		t.Errorf("of a store in use: %+v", found)
	}
	pattern := bytes.Repeat([]byte("a block of some sandbox's data. "), 1<<15) // 1 MiB
	writeFile(t, at(clone, "upper/file"), pattern)

	// Somebody took the flag away by which the device goes with its last user.
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := unix.IoctlLoopGetStatus64(fd)
	if err != nil {
		t.Fatal(err)
	}
	info.Flags &^= unix.LO_FLAGS_AUTOCLEAR
	if err := unix.IoctlLoopSetStatus64(fd, info); err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
	if found := look(false); len(found) != 1 || !strings.Contains(found[0].What, device) || found[0].Done != "" {
		t.Errorf("a device that stays: %+v", found)
	}
	if found := look(true); len(found) != 1 || found[0].Done == "" || found[0].Err != nil {
		t.Errorf("a device that stays: %+v", found)
	}
	if got := readFile(t, at(clone, "upper/file")); got != string(pattern) {
		t.Errorf("the sandbox on it reads %d other bytes", len(got))
	}
	_ = unix.Close(clone)
	until(t, "the device goes with its last user", func() bool { return len(loopsOf(t, dir)) == 0 })

	if err := os.WriteFile(filepath.Join(dir, unfinished), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := look(true); len(found) != 1 || found[0].Done == "" {
		t.Errorf("a store that was never finished: %+v", found)
	}
	if found := look(true); len(found) != 0 {
		t.Errorf("of a sound store: %+v", found)
	}
	file, err := os.OpenFile(filepath.Join(dir, loopFile), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	place := find(t, file, pattern[:4096])
	if _, err := file.WriteAt([]byte("rot"), place); err != nil {
		t.Fatal(err)
	}
	if found := look(true); len(found) != 1 || found[0].Done != "" || found[0].Err == nil || !strings.Contains(found[0].What, "damaged") {
		t.Errorf("of a store with a block that rots: %+v", found)
	}
	if _, err := file.WriteAt(make([]byte, 64<<20), 64<<10); err != nil { // the superblock, and much of the rest
		t.Fatal(err)
	}
	if found := look(true); len(found) != 1 || found[0].Done != "" || found[0].Err == nil || !strings.Contains(found[0].What, "damaged") {
		t.Errorf("of a store that cannot be mounted: %+v", found)
	}
}

// find returns where a sparse file has some bytes.
func find(t *testing.T, f *os.File, what []byte) int64 {
	t.Helper()
	buf := make([]byte, 1<<20)
	for at := int64(0); ; {
		data, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if err != nil {
			t.Fatalf("the file has no %q", what[:16])
		}
		data = data / 4096 * 4096
		n, _ := f.ReadAt(buf, data) // at the end there is less
		for i := 0; i+len(what) <= n; i += 4096 {
			if bytes.Equal(buf[i:i+len(what)], what) {
				return data + int64(i)
			}
		}
		at = data + int64(n)
	}
}
