// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/cgroup/cgroupfs"
)

var some = Limits{CPU: 0.5, MemoryBytes: 64 << 20, PIDs: 100}

// openHost opens the real hierarchies under a namespace of the test's own, and checks at the end
// that nothing of it is left.
func openHost(t *testing.T) *Tree {
	t.Helper()
	tree := reopen(t, strings.ToLower(rand.Text()[:12]))
	for _, c := range []string{CPU, Memory, PIDs} {
		if !tree.Holds(c) {
			t.Skipf("needs the %s controller of cgroup v1", c)
		}
	}
	return tree
}

// reopen opens them under a namespace that a test has.
func reopen(t *testing.T, namespace string) *Tree {
	t.Helper()
	skiptest.WithoutRoot(t, "it makes groups")
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	tree := New(cgroupfs.System{}, namespace, "", some)
	var paths []string
	for _, m := range cgroupfs.Mounts(string(text)) {
		if m.V2 {
			continue
		}
		if _, err := tree.Add(m); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, filepath.Join(m.Path, cgroupfs.Top, namespace))
	}
	t.Cleanup(func() {
		for range 2 {
			if err := tree.Close(); err != nil {
				t.Error(err)
			}
		}
		for _, path := range paths {
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("left behind: %s: %v", path, err)
			}
		}
	})
	return tree
}

// unlock lets another tree have the namespace, as the end of a process does.
func unlock(t *testing.T, tree *Tree) {
	t.Helper()
	for _, h := range tree.hierarchies {
		if err := cgroupfs.Lock(h.dir, unix.LOCK_UN); err != nil {
			t.Fatal(err)
		}
	}
}

// left lists the groups that are no sandbox's, of all hierarchies.
func left(t *testing.T, tree *Tree) []string {
	t.Helper()
	names, err := tree.Names()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, own) })
}

// onThread runs f on an OS thread that ends with it and is not the first of
// the process: that one never ends, and would stay in the groups it joins.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			onThread(f) // this goroutine keeps the first thread meanwhile
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
}

// within starts a process in the groups of a.
func within(t *testing.T, a *Agent, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	onThread(func() {
		for _, f := range a.Files() {
			if _, err := f.WriteString("0"); err != nil {
				t.Error(err)
				return
			}
		}
		if err := cmd.Start(); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// v1Paths returns the v1 groups, of the controllers we limit, in a
// /proc/…/cgroup file.
func v1Paths(t *testing.T, path string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(b)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		for c := range strings.SplitSeq(controllers, ",") {
			if c == "cpu" || c == "memory" || c == "pids" {
				out[c] = group
			}
		}
	}
	return out
}
