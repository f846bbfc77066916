// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/runtime/native"
)

// What is attached in a yard is nowhere else, and goes with the driver: sandboxes do not keep it.
func TestAYardLeavesNothing(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	d := openWith(t, native.Options{Dir: dir, Yard: true})
	t.Run("WhileASandboxRuns", func(t *testing.T) {
		i := box(t, d) // until the end of this
		if got := sh(t, i, "root", "cat /proc/1/mountinfo /proc/self/mountinfo"); strings.Contains(got, " /lower ") || strings.Contains(got, " /kept ") || strings.Contains(got, dir) {
			t.Errorf("a sandbox sees the yard's mounts:\n%s", got)
		}
		host, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(host), " /kept ") {
			t.Errorf("the host has the yard's mounts:\n%s", host)
		}
	})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) { // the kernel lets go in its own time
		left := loopsOf(t, dir)
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the store's device is held after the driver's end: %q", left)
		}
	}
}

// loopsOf lists the loop devices of files below dir.
func loopsOf(t *testing.T, dir string) (loops []string) {
	t.Helper()
	bound, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bound {
		if file, err := os.ReadFile(b); err == nil && strings.HasPrefix(string(file), dir) {
			loops = append(loops, b)
		}
	}
	return loops
}
