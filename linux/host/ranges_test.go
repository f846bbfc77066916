// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/spawn"
)

func TestNoTwoInstancesShareARange(t *testing.T) {
	skiptest.WithoutRoot(t, "it makes user namespaces with mapped ranges")
	r := NewRanges(t.TempDir(), spawn.Fastest)
	defer r.Close()
	seen := map[uint32]bool{}
	for range 20 {
		u, err := r.Take()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release(u)
		if seen[u.Base] {
			t.Errorf("range %d was given twice", u.Base)
		}
		seen[u.Base] = true
	}
}

func same(t *testing.T, a, b *os.File) bool {
	t.Helper()
	x, err := a.Stat()
	if err != nil {
		t.Fatal(err)
	}
	y, err := b.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(x, y)
}

// The server holds no user namespace of an instance that lives, and has it again for the next.
func TestARangesUserNamespaceIsFoundAgainInItsProcess(t *testing.T) {
	skiptest.WithoutRoot(t, "it makes user namespaces")
	process := func() (pidfd, ns *os.File) {
		cmd := exec.Command("sleep", "600")
		fd := -1
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, PidFD: &fd, Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		ns, err := os.Open("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/user")
		if err != nil {
			t.Fatal(err)
		}
		pidfd = os.NewFile(uintptr(fd), "pidfd")
		t.Cleanup(func() { _, _ = ns.Close(), pidfd.Close() })
		return pidfd, ns
	}
	pidfd, ns := process()
	stranger, _ := process()
	st, err := ns.Stat()
	if err != nil {
		t.Fatal(err)
	}
	u := &Range{kept: st}
	again := u.Reopen(pidfd)
	if again == nil {
		t.Fatal("it is not found")
	}
	defer func() { _ = again.Close() }()
	if !same(t, ns, again) {
		t.Error("another one is found")
	}
	if u.Reopen(stranger) != nil {
		t.Error("the namespace of another process is taken for it")
	}
	if new(Range).Reopen(pidfd) != nil {
		t.Error("one is found for a range that had none")
	}
}
