// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerdtest_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/internal/skiptest"
)

// An Engine that is started again has its earlier data, and nothing of one that ended goes on.
func TestAnEngineEndsWithAllThatItStarted(t *testing.T) {
	h := dockerdtest.New(t)
	for range 2 {
		c, err := net.Dial("unix", h.Socket())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		pid := h.Engine().PID
		ns, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns/pid"))
		if err != nil {
			t.Fatal(err)
		}
		h.Stop()
		all, err := filepath.Glob("/proc/[0-9]*/ns/pid")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range all {
			if in, err := os.Readlink(path); err == nil && in == ns {
				t.Errorf("%s goes on in the Engine's namespace", path)
			}
		}
		if _, err := os.Stat(filepath.Join(h.Dir, "data", "image")); errors.Is(err, fs.ErrNotExist) {
			t.Error("the Engine kept no data")
		}
		h.Start()
	}
}

// What another test has mounted goes when that test unmounts it, whatever Engines began meanwhile.
func TestAnEngineHoldsNoMountOfOthers(t *testing.T) {
	skiptest.WithoutRoot(t, "it mounts")
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	h := dockerdtest.New(t)
	seen, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", h.Engine().PID))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(seen), " /etc ") {
		t.Errorf("the Engine has no mounts of its own:\n%s", seen)
	}
	if strings.Contains(string(seen), dir) {
		t.Errorf("%s is mounted for the Engine, too", dir)
	}
}
