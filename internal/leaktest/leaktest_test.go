// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package leaktest_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/internal/leaktest"
	"sandpit.dev/internal/skiptest"
)

// start runs a program that ends with its standard input, and has begun when
// this returns.
func start(t *testing.T, attr *syscall.SysProcAttr, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", script+"\necho begun; read line")
	cmd.SysProcAttr = attr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	line := make([]byte, 16)
	if n, err := out.Read(line); err != nil || strings.TrimSpace(string(line[:n])) != "begun" {
		t.Fatalf("the helper said %q, %v", line[:n], err)
	}
	return cmd
}

func take(t *testing.T, s leaktest.Scope) leaktest.Snapshot {
	t.Helper()
	snap, err := leaktest.Take(s)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// dir returns a new directory by its canonical name, as the kernel reports it.
func dir(t *testing.T) string {
	t.Helper()
	d, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTake(t *testing.T) {
	needRoot := func(t *testing.T) {
		t.Helper()
		skiptest.WithoutRoot(t, "it makes what only root can")
	}
	// sees checks that each kind that grows is reported, and is gone afterwards.
	sees := func(t *testing.T, s leaktest.Scope, kind leaktest.Kind, grow func(t *testing.T)) {
		t.Helper()
		before := take(t, s)
		t.Run("While", func(t *testing.T) {
			grow(t)
			grown := take(t, s).Beyond(before, nil)
			for _, line := range grown {
				if strings.HasPrefix(line, string(kind)+" ") {
					return
				}
			}
			t.Errorf("got %q, want a line of a %s", grown, kind)
		})
		limit, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		left, _, err := leaktest.Settle(limit, s, before, nil)
		if diff := cmp.Diff([]string(nil), left); diff != "" || err != nil {
			t.Errorf("afterwards (%v): %s", err, diff)
		}
	}
	self := []int{os.Getpid()}
	t.Run("AProcessThatAServerStarted", func(t *testing.T) {
		sees(t, leaktest.Scope{Servers: self}, leaktest.Processes, func(t *testing.T) { start(t, nil, "") })
	})
	t.Run("ADescriptor", func(t *testing.T) {
		sees(t, leaktest.Scope{Servers: self}, leaktest.Descriptors, func(t *testing.T) {
			fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Close(fd) })
		})
	})
	t.Run("ANamedSocket", func(t *testing.T) {
		d := dir(t)
		sees(t, leaktest.Scope{Dir: d}, leaktest.Sockets, func(t *testing.T) {
			l, err := net.Listen("unix", filepath.Join(d, "s"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
		})
	})
	t.Run("ADirectory", func(t *testing.T) {
		d := dir(t)
		sees(t, leaktest.Scope{Dir: d}, leaktest.Directories, func(t *testing.T) {
			if err := os.MkdirAll(filepath.Join(d, "a/b"), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(filepath.Join(d, "a")) })
		})
	})
	t.Run("ANamespaceOfAProcess", func(t *testing.T) {
		needRoot(t)
		sees(t, leaktest.Scope{Servers: self}, leaktest.Namespaces, func(t *testing.T) {
			start(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS}, "")
		})
	})
	t.Run("AMountInANamespaceOfOthers", func(t *testing.T) {
		needRoot(t)
		d := dir(t)
		sees(t, leaktest.Scope{Dir: d}, leaktest.Mounts, func(t *testing.T) {
			start(t, &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}, "mount -t tmpfs none "+d)
		})
	})
	t.Run("ACgroup", func(t *testing.T) {
		needRoot(t)
		const mark = "leaktest-" + "a6f0d1"
		tops, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
		if err != nil || len(tops) == 0 {
			t.Skip("needs a cgroup hierarchy below /sys/fs/cgroup")
		}
		sees(t, leaktest.Scope{Marks: []string{mark}}, leaktest.Cgroups, func(t *testing.T) {
			path := filepath.Join(filepath.Dir(tops[0]), mark)
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(path) })
		})
	})
	t.Run("WhatIsOthersIsNotCounted", func(t *testing.T) {
		start(t, nil, "")
		if got := take(t, leaktest.Scope{Dir: dir(t)}).Count(leaktest.Processes); got != 0 {
			t.Errorf("got %d processes of a scope that has none", got)
		}
	})
}

func TestBeyond(t *testing.T) {
	snap := func(n int) leaktest.Snapshot {
		return leaktest.Snapshot{leaktest.Descriptors: {"user:[]": n}}
	}
	cache := []leaktest.Cache{{Kind: leaktest.Descriptors, Part: "user:", Most: 8}}
	for _, c := range []struct {
		name        string
		before, now int
		caches      []leaktest.Cache
		want        []string
	}{
		{"LessIsNoLeak", 3, 2, nil, nil},
		{"MoreIsALeak", 2, 3, nil, []string{"descriptor user:[]: 3, before 2"}},
		{"ACacheMayGrowToItsBound", 2, 8, cache, nil},
		{"AndNotBeyond", 2, 9, cache, []string{"descriptor user:[]: 9, before 8"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, snap(c.now).Beyond(snap(c.before), c.caches)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPSS(t *testing.T) {
	got, err := leaktest.PSS(os.Getpid())
	if err != nil || got < 64<<10 || got > 64<<30 {
		t.Errorf("got %d, %v; want what a test program has", got, err)
	}
}

func TestCPU(t *testing.T) {
	before, err := leaktest.CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	work := exec.Command("sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
	if err := work.Run(); err != nil {
		t.Fatal(err)
	}
	used := work.ProcessState.UserTime() + work.ProcessState.SystemTime()
	after, err := leaktest.CPU(os.Getpid())
	if err != nil || after-before < used-20*time.Millisecond || used < 20*time.Millisecond {
		t.Errorf("got %v, %v; want what the child used, %v", after-before, err, used)
	}
}
