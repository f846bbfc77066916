// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	stdruntime "runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/leaktest"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// The end of a process 1 waits until all of its namespace are reaped, also a child of a
// server that was killed: that is the host's init's by then, which may take its time.
func TestAServerComesBackToAProcessOneThatNobodyLetsEnd(t *testing.T) {
	needRoot(t)
	dir := trueDir(t)
	d := open(t, dir, "")
	i := lasting(t, d)
	pid := processOf(t, dir, i)
	child := visitor(t, pid)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		if _, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/root"); errors.Is(err, fs.ErrNotExist) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("process 1 does not begin to end")
		}
		stdruntime.Gosched()
	}
	if n, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); n != 0 || err != nil {
		t.Fatalf("process 1 has ended though its child was not reaped: %d, %v", n, err)
	}

	d = open(t, dir, "")
	again, err := d.Open(t.Context(), i.Handle())
	if err != nil {
		t.Fatalf("the sandbox cannot be found again: %v", err)
	}
	if exit, err := again.Wait(t.Context()); err != nil || exit.Cause != sandbox.CauseHost {
		t.Errorf("its end: %+v, %v, want one that is the host's", exit, err)
	}
	if err := again.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	_ = child.Wait() // killed with its namespace
	if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	nothing(t, leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}})
}

// visitor is a child of ours in the pid namespace of a process; whoever gets it reaps it.
func visitor(t *testing.T, pid int) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "1000")
	began := make(chan error)
	go func() {
		stdruntime.LockOSThread() // for ever: what it forks is in another namespace
		fd, err := unix.PidfdOpen(pid, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWPID)
			_ = unix.Close(fd)
		}
		if err == nil {
			err = cmd.Start()
		}
		began <- err
	}()
	if err := <-began; err != nil {
		t.Fatal(err)
	}
	return cmd
}
