// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestReadTellsOfThisMachine(t *testing.T) {
	dir := t.TempDir()
	before, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	if got, want := before.MemorySize, int64(info.Totalram)*int64(info.Unit); got > want || got < want*9/10 {
		t.Errorf("memory: got %d, sysinfo has %d", got, want)
	}
	if before.CPUs < runtime.NumCPU() || before.MemoryBytes <= 0 || before.MemoryBytes >= before.MemorySize || before.DiskBytes <= 0 || before.DiskBytes >= before.DiskSize || before.Tasks < 1 || before.Tasks > before.TaskLimit {
		t.Errorf("got %+v", before)
	}

	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	if before.Tasks < int64(len(threads)-1) {
		t.Errorf("the machine has %d tasks, this program alone %d", before.Tasks, len(threads))
	}
	var own unix.Rusage
	for own.Utime.Nano() < int64(300*time.Millisecond) {
		if err := unix.Getrusage(unix.RUSAGE_SELF, &own); err != nil {
			t.Fatal(err)
		}
	}
	after, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if after.CPU-before.CPU < 100*time.Millisecond {
		t.Errorf("a busy loop of 0.3 s: the processors were busy for %v more", after.CPU-before.CPU)
	}
	if _, err := Read(dir + "/none"); err == nil {
		t.Error("a directory that is not there has a disk")
	}
}

func TestStatOfProc(t *testing.T) {
	var u Use
	text := "cpu  100 20 30 4000 50 6 7 800 100 9\ncpu0 50 10 15 2000 25 3 4 400 50 5\ncpu1 50 10 15 2000 25 3 3 400 50 4\nintr 12\n"
	if err := u.stat([]byte(text)); err != nil || u.CPUs != 2 || u.CPU != 163*tick {
		t.Errorf("got %+v, %v", u, err)
	}
	for _, bad := range []string{"", "cpu x 1 2\n", "intr 1\n"} {
		if err := new(Use).stat([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if _, err := tasks([]byte("0.1 0.2\n")); err == nil {
		t.Error("half of a line is taken")
	}
}
