// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sandpit.dev/internal/skiptest"
)

func TestSweepGroup(t *testing.T) {
	skiptest.WithoutRoot(t, "it makes namespaces")
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	name := "sandpit-bench-" + rand.Text()
	var trees []string
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, " - cgroup") {
			trees = append(trees, filepath.Join(strings.Fields(line)[4], name))
		}
	}
	if len(trees) == 0 {
		t.Skip("no cgroup hierarchy is mounted")
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	joined := 0
	for _, tree := range trees {
		inner := filepath.Join(tree, "a", "b")
		if err := os.MkdirAll(inner, 0o755); err != nil {
			t.Fatal(err)
		}
		// Some hierarchies take no process before they are set up.
		if os.WriteFile(filepath.Join(inner, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644) == nil {
			joined++
		}
	}
	if joined == 0 {
		t.Fatal("no hierarchy took the process")
	}
	if err := SweepGroup(name); err != nil {
		t.Error(err)
	}
	exit, _ := errors.AsType[*exec.ExitError](<-ended)
	if exit == nil || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the process ended with %v, want killed", exit)
	}
	for _, tree := range trees {
		if _, err := os.Lstat(tree); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there", tree)
		}
	}
	if err := SweepGroup(name); err != nil {
		t.Errorf("once more: %v", err)
	}
}
