// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// FuzzStat holds that what the kernel shows of processes is read whatever their names are.
func FuzzStat(f *testing.F) {
	for _, s := range []string{"1 (a) S 0 1 1 0", "2 () ) Z 1 2 3", "3 (x"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) { _, _ = parseStat([]byte(s)) })
}

// A process whose first thread has ended forks yet, by the others.
func TestAProcessWithoutItsFirstThreadIsNotDead(t *testing.T) {
	const program = `import ctypes, threading, time, sys
def rest():
    time.sleep(0.1); print("up", flush=True); sys.stdin.read()
threading.Thread(target=rest).start()
ctypes.CDLL(None).syscall(60 if ctypes.sizeof(ctypes.c_long) == 8 and __import__("os").uname().machine == "x86_64" else 93, 0)`
	cmd := exec.Command("python3", "-c", program)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	before := Clock()
	if err := cmd.Start(); err != nil {
		t.Skip("there is no python3 here")
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if got := Below(os.Getpid(), true); !slices.Contains(got, cmd.Process.Pid) {
		t.Errorf("%d is not among %v", cmd.Process.Pid, got)
	}
	if at, ok := Started(cmd.Process.Pid); !ok || at < before-time.Second/ticks || at > Clock() {
		t.Errorf("started at %v, asked between %v and %v", at, before, Clock())
	}
	_ = in.Close()
	_ = cmd.Wait()
	if got := Below(os.Getpid(), true); slices.Contains(got, cmd.Process.Pid) {
		t.Error("it is there after its end")
	}
}
