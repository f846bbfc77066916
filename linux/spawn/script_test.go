// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sleeper is a process in namespaces of its own, whose process 1 it is.
func sleeper(t *testing.T) (pidfd *os.File, pid int) {
	t.Helper()
	needRoot(t)
	cmd := exec.Command("/bin/sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | Namespaces,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 1_100_000_000, Size: RangeSize}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 1_100_000_000, Size: RangeSize}},

		GidMappingsEnableSetgroups: true,
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	pidfd = os.NewFile(uintptr(fd), "pidfd")
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = pidfd.Close()
	})
	return pidfd, cmd.Process.Pid
}

func openFDs(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestAScriptRunsInTheNamespacesAsTheirRoot(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		pidfd, pid := sleeper(t)
		before := openFDs(t)
		script := Script{Method: m}
		uid, gid, name := shared[[3]uint32](t), shared[[3]uint32](t), shared[[6]byte](t)
		*name = [6]byte{'s', 'c', 'r', 'i', 'p', 't'}
		uid[0], gid[0] = 7, 7
		script.Do("getresuid", Never, unix.SYS_GETRESUID, ptr(&uid[0]), ptr(&uid[1]), ptr(&uid[2]))
		script.Do("getresgid", Never, unix.SYS_GETRESGID, ptr(&gid[0]), ptr(&gid[1]), ptr(&gid[2]))
		script.Do("sethostname", Never, unix.SYS_SETHOSTNAME, Param(0), Param(1))
		got, err := script.Run(pidfd, uintptr(unsafe.Pointer(name)), uintptr(len(name)))
		if err != nil {
			t.Fatal(err)
		}
		got.Close()
		if *uid != [3]uint32{} || *gid != [3]uint32{} {
			t.Errorf("it ran as %v and %v, want the namespace's root", *uid, *gid)
		}
		host, _ := os.Hostname()
		out, err := exec.Command("nsenter", "-t", strconv.Itoa(pid), "-u", "hostname").Output()
		if err != nil || strings.TrimSpace(string(out)) != "script" || host == "script" {
			t.Errorf("the host name is %q there and %q here, %v", out, host, err)
		}
		if n := openFDs(t); n != before {
			t.Errorf("%d descriptors are open, %d were", n, before)
		}
	})
}

// What the server's handlers hear of a script would interrupt its threads for nothing.
func TestTheEndOfAScriptIsToldByNoSignal(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		pidfd, _ := sleeper(t)
		heard := make(chan os.Signal, 8)
		signal.Notify(heard, unix.SIGCHLD)
		defer signal.Stop(heard)
		script := Script{Method: m}
		script.Do("getuid", Never, unix.SYS_GETUID)
		got, err := script.Run(pidfd)
		if err != nil {
			t.Fatal(err)
		}
		got.Close()
		if err := unix.Kill(unix.Getpid(), unix.SIGCHLD); err != nil { // the one that is heard
			t.Fatal(err)
		}
		<-heard
		if n := len(heard); n != 0 {
			t.Errorf("%d signals more", n)
		}
	})
}

func TestAScriptPassesResultsOnAndLeavesOutWhatHangsOnAFailure(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		pidfd, _ := sleeper(t)
		before := openFDs(t)
		script := Script{Method: m}
		read := shared[[4]byte](t)
		zero := script.Open("open", Never, unix.SYS_OPENAT, At(), script.Text("/dev/zero"), Int(unix.O_RDONLY|unix.O_CLOEXEC))
		read[0] = 7
		script.Do("read", Never, unix.SYS_READ, zero, ptr(&read[0]), Int(1))
		missing := script.Open("open what is missing", unix.ENOENT, unix.SYS_OPENAT, At(), script.Text("/nowhere"), Int(unix.O_RDONLY))
		read[1] = 7
		script.Do("read what is missing", Never, unix.SYS_READ, missing, ptr(&read[1]), Int(1))
		got, err := script.Run(pidfd)
		if err != nil {
			t.Fatal(err)
		}
		if *read != [4]byte{0, 7} {
			t.Errorf("read %v, want the first only", *read)
		}
		f := got.Take(zero, "zero")
		if n, err := f.Read(make([]byte, 8)); n != 8 || err != nil {
			t.Errorf("the taken descriptor gives %d bytes, %v", n, err)
		}
		_ = f.Close()
		got.Close()
		if n := openFDs(t); n != before {
			t.Errorf("%d descriptors are open, %d were", n, before)
		}
	})
}

func TestAScriptThatFailsSaysWhereAndLeavesNothingOpen(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		pidfd, _ := sleeper(t)
		before := openFDs(t)
		script := Script{Method: m}
		script.Open("open", Never, unix.SYS_OPENAT, At(), script.Text("/dev/zero"), Int(unix.O_RDONLY|unix.O_CLOEXEC))
		script.Do("make the impossible", unix.ENOENT, unix.SYS_MKDIRAT, At(), script.Text("/dev/zero/x"), Int(0o755))
		after := shared[byte](t)
		*after = 7
		script.Do("clear it", Never, unix.SYS_GETRANDOM, ptr(after), Int(1), Int(0))
		_, err := script.Run(pidfd)
		if !errors.Is(err, unix.ENOTDIR) || !strings.HasPrefix(err.Error(), "make the impossible: ") {
			t.Errorf("got %v", err)
		}
		if *after != 7 {
			t.Error("the script went on")
		}
		if n := openFDs(t); n != before {
			t.Errorf("%d descriptors are open, %d were", n, before)
		}
	})
}

func TestAScriptCannotVisitADeadProcess(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		cmd := exec.Command("/bin/true")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		pidfd := os.NewFile(uintptr(fd), "pidfd")
		defer func() { _ = pidfd.Close() }()
		_ = cmd.Wait()
		script := Script{Method: m}
		script.Do("getpid", Never, unix.SYS_GETPID)
		if _, err := script.Run(pidfd); !errors.Is(err, unix.ESRCH) {
			t.Errorf("got %v, want ESRCH", err)
		}
	})
}

// A child has the memory of a Go program in whatever state that is: goroutines that grow their
// stacks, that are preempted by signals, and a collector of garbage. None of it may hold a child
// up, or reach it.
func TestChildrenOfABusyServerRunTheirScripts(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		ctx, cancel := context.WithCancel(t.Context())
		var busy, visits sync.WaitGroup
		for range 2 {
			busy.Go(func() {
				for ctx.Err() == nil {
					grow(200)
					runtime.GC()
					_ = unix.Kill(unix.Getpid(), unix.SIGURG)
				}
			})
		}
		script := Script{Method: m}
		for range 100 {
			script.Do("look", Never, unix.SYS_FACCESSAT, At(), script.Text("/dev/zero"), Int(0))
		}
		zero := script.Open("open", Never, unix.SYS_OPENAT, At(), script.Text("/dev/zero"), Int(unix.O_RDONLY|unix.O_CLOEXEC))
		for range 4 {
			visits.Go(func() {
				for range 25 {
					got, err := script.RunAlone()
					if err != nil {
						t.Error(err)
						return
					}
					_ = got.Take(zero, "zero").Close()
				}
			})
		}
		visits.Wait()
		cancel()
		busy.Wait()
	})
}

// grow uses a stack of n KiB.
func grow(n int) byte {
	var page [1024]byte
	if n > 0 {
		page[n%len(page)] = grow(n - 1)
	}
	return page[0]
}

func ptr[T any](p *T) Arg { return Pointer(unsafe.Pointer(p)) }

// shared returns memory that a child writes to for the test to see, whether it has a copy of all
// else or not.
func shared[T any](t *testing.T) *T {
	t.Helper()
	var zero T
	p, err := unix.MmapPtr(-1, 0, nil, unsafe.Sizeof(zero), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.MunmapPtr(p, unsafe.Sizeof(zero)) })
	return (*T)(p)
}
