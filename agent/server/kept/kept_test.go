// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kept_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/kept"
)

func TestWorksFromLinux615On(t *testing.T) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	if want, got := major > 6 || major == 6 && minor >= 15, kept.Works(); got != want {
		t.Errorf("got %v on Linux %d.%d", got, major, minor)
	}
}

// The first thread of a process cannot end.
func TestWorksIsTheSameOnEveryThread(t *testing.T) {
	want := kept.Works()
	fds := descriptors(t)
	for range 50 {
		runtime.LockOSThread() // and the next goroutine finds another thread, if it is this one
		if got := kept.Works(); got != want {
			t.Fatalf("got %v, and %v before", got, want)
		}
		runtime.UnlockOSThread()
	}
	if now := descriptors(t); now != fds {
		t.Errorf("%d descriptors are open, and %d were before", now, fds)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestStatusIsTheOneThatWasReaped(t *testing.T) {
	if !kept.Works() {
		t.Skip("Linux keeps the status of who was reaped since 6.15")
	}
	for shell, want := range map[string]func(unix.WaitStatus) bool{
		"exit 0":     func(s unix.WaitStatus) bool { return s.Exited() && s.ExitStatus() == 0 },
		"exit 42":    func(s unix.WaitStatus) bool { return s.Exited() && s.ExitStatus() == 42 },
		"kill -9 $$": func(s unix.WaitStatus) bool { return s.Signaled() && s.Signal() == unix.SIGKILL },
	} {
		fd := -1
		cmd := exec.Command("/bin/sh", "-c", "read go; "+shell)
		cmd.SysProcAttr = &syscall.SysProcAttr{PidFD: &fd}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, done, err := kept.Status(fd); done || err != nil {
			t.Errorf("%s: while it lives: %v %v", shell, done, err)
		}
		_ = in.Close()
		_ = cmd.Wait()
		if status, done, err := kept.Status(fd); err != nil || !done || !want(status) {
			t.Errorf("%s: %v %v %v", shell, status, done, err)
		}
		_ = unix.Close(fd)
	}
}

// A process that is reaped in the very moment in which it is asked for has a status all the same.
func TestStatusOfWhoIsReapedMeanwhile(t *testing.T) {
	if !kept.Works() {
		t.Skip("Linux keeps the status of who was reaped since 6.15")
	}
	for n := range 400 {
		fd := -1
		cmd := exec.Command("/bin/sh", "-c", "exit 7")
		cmd.SysProcAttr = &syscall.SysProcAttr{PidFD: &fd}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		reaped := make(chan error, 1)
		go func() { reaped <- cmd.Wait() }()
		for done := false; !done; {
			var status unix.WaitStatus
			var err error
			if status, done, err = kept.Status(fd); err != nil || done && status.ExitStatus() != 7 {
				t.Fatalf("process %d: %v %v %v", n, status, done, err)
			}
		}
		<-reaped
		_ = unix.Close(fd)
	}
}
