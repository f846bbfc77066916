// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package steer

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
)

func TestTryHasTheRightsAndLeavesNothing(t *testing.T) {
	skiptest.WithoutRoot(t, "it makes network namespaces")
	all := func() (out []string) {
		threads, err := filepath.Glob("/proc/self/task/*/ns/net")
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			if ns, err := os.Readlink(thread); err == nil && !slices.Contains(out, ns) { // it may have ended
				out = append(out, ns)
			}
		}
		return out
	}
	before := all()
	files := openFiles(t)
	for range 3 {
		if err := Try(); err != nil {
			t.Fatal(err)
		}
	}
	for _, ns := range all() {
		if !slices.Contains(before, ns) {
			t.Errorf("a thread stays in %s", ns)
		}
	}
	if now := openFiles(t); now > files {
		t.Errorf("%d descriptors are open, before there were %d", now, files)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestWhereIPv6IsOffItIsSteeredAllTheSame(t *testing.T) {
	ns := namespace(t)
	err := within(ns, func() error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0o644)
	})
	if os.IsNotExist(err) {
		t.Skip("the kernel has no IPv6")
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t, ns, "tcp", "[2001:db8::1]:80"); err == nil {
		t.Fatal("IPv6 is not off")
	}
	s, err := Open(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, to := range []string{"192.0.2.1:80", "[2001:db8::1]:80"} {
		c, err := dial(t, ns, "tcp", to)
		if err != nil {
			t.Fatalf("%s: %v", to, err)
		}
		got, err := s.Accept()
		if err != nil || got.LocalAddr().String() != to {
			t.Fatalf("%s: %v, %v", to, got, err)
		}
		_ = got.Close()
		_ = c.Close()
	}
}

func TestANamespaceWithAnotherWayOutIsRefused(t *testing.T) {
	ns := namespace(t)
	if err := Confined(ns); err != nil {
		t.Fatalf("one with its loopback alone: %v", err)
	}
	runtime.LockOSThread() // of which the namespace is asked
	defer runtime.UnlockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if err := Confined(own); fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "the host's network") {
		t.Errorf("the host's: %v", err)
	}
	ip := func(args ...string) {
		t.Helper()
		err := within(ns, func() error { return exec.Command("ip", args...).Run() })
		if err != nil {
			t.Skipf("ip %s: %v", strings.Join(args, " "), err)
		}
	}
	ip("link", "add", "out0", "type", "veth", "peer", "name", "out1")
	if err := Confined(ns); err != nil {
		t.Errorf("one whose other interfaces are down: %v", err)
	}
	ip("link", "set", "out0", "up")
	if err := Confined(ns); fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "out0") {
		t.Errorf("one with an interface: %v", err)
	}
}
