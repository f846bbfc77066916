// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package furnish

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/spawn"
)

func TestADeadProcHasTheKernelsFilesAndNoProcess(t *testing.T) {
	skiptest.WithoutRoot(t, "it mounts a /proc")
	m, err := DeadProc(spawn.Fastest)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	fd, err := unix.Openat(int(m.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	dir := os.NewFile(uintptr(fd), "proc")
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, "meminfo") {
		t.Errorf("it is no /proc: %q", names)
	}
	for _, n := range names {
		if _, err := strconv.Atoi(n); err == nil {
			t.Errorf("it shows process %s", n)
		}
	}
	if _, err := os.Stat("/proc/" + strconv.Itoa(os.Getpid())); err != nil {
		t.Errorf("the host's shows none either: %v", err)
	}
}
