// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
)

// TestMain makes the test binary a server to be killed when asked so.
func TestMain(m *testing.M) {
	if dir := os.Getenv("LAYER_TEST_SERVE"); dir != "" {
		if kind := os.Getenv("LAYER_TEST_CHURN"); kind != "" {
			churn(dir, Kind(kind))
		}
		serve(dir)
	}
	os.Exit(m.Run())
}

// serve opens a loop store, prints the descriptor of a new layer, and waits to
// be killed.
func serve(dir string) {
	s, err := Open(context.Background(), withAttach(Options{Dir: dir, Kind: Loop, SizeBytes: minLoopSize}))
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	l, err := s.Create("fromthechild", 0)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("ready", l.Fd())
	bufio.NewReader(os.Stdin).ReadByte()
	os.Exit(0)
}

// server starts this binary as serve(dir).
func server(t *testing.T, dir string, env ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "LAYER_TEST_SERVE="+dir), env...)
	if _, err := cmd.StdinPipe(); err != nil {
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
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd, bufio.NewReader(out)
}

func needRoot(tb testing.TB) {
	tb.Helper()
	skiptest.WithoutRoot(tb, "layers belong to several users")
}

func needLoop(tb testing.TB) {
	tb.Helper()
	needRoot(tb)
	if _, err := findMkfs(); err != nil {
		tb.Skip("mkfs.btrfs is missing")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		tb.Skip("the host has no loop devices")
	}
	fs, err := unix.Fsopen("btrfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		tb.Skip("the kernel has no btrfs")
	}
	unix.Close(fs)
}

// withAttach has a loop store opened on kernels that clone no detached mounts, too. The few tests
// that clone one skip.
func withAttach(opts Options) Options {
	opts.Attach = func(int) error { return nil }
	return opts
}

// needLimits skips where the kernel's btrfs cannot limit a layer, nor count what it holds.
func needLimits(tb testing.TB, s *Store) {
	tb.Helper()
	if err := s.Info().DiskLimit; err != nil {
		tb.Skip("the kernel has no simple quotas of btrfs (Linux 6.7):", err)
	}
}

// mustOpen opens a store and closes it at the end of the test.
func mustOpen(tb testing.TB, opts Options) *Store {
	tb.Helper()
	if opts.Kind == Loop && opts.SizeBytes == 0 {
		opts.SizeBytes = minLoopSize
	}
	s, err := Open(tb.Context(), withAttach(opts))
	if err != nil {
		tb.Fatalf("Open(%s): %v", opts.Kind, err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return s
}

func mustCreate(tb testing.TB, s *Store, id string, limit int64) *Layer {
	tb.Helper()
	l, err := s.Create(id, limit)
	if err != nil {
		tb.Fatalf("Create(%s): %v", id, err)
	}
	tb.Cleanup(func() { l.Close() })
	return l
}

// eachKind runs f over a new directory of every kind, and then checks that
// nothing of it is left on the machine.
func eachKind(t *testing.T, f func(t *testing.T, opts Options)) {
	t.Run("plain", func(t *testing.T) {
		needRoot(t)
		nothingLeft(t)
		f(t, Options{Dir: filepath.Join(t.TempDir(), "store"), Kind: Plain})
	})
	t.Run("loop", func(t *testing.T) {
		needLoop(t)
		nothingLeft(t)
		f(t, Options{Dir: filepath.Join(t.TempDir(), "store"), Kind: Loop})
	})
	t.Run("btrfs", func(t *testing.T) {
		needLoop(t)
		nothingLeft(t)
		f(t, Options{Dir: btrfsDir(t), Kind: Btrfs})
	})
}

// btrfsDir returns a directory on a btrfs with quotas.
func btrfsDir(tb testing.TB) string {
	host := mustOpen(tb, Options{Dir: tb.TempDir(), Kind: Loop})
	return fmt.Sprintf("/proc/self/fd/%d/data", host.top)
}

// traces of stores on this machine: mounts, loop devices and descriptors.
type traces struct{ Mounts, Loops, Descriptors []string }

func look(t *testing.T, dir string) traces {
	t.Helper()
	var tr traces
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		others := strings.HasPrefix(strings.Fields(line)[4], os.TempDir()+"/") // below it are those of tests that run beside this one
		if strings.Contains(line, dir) || strings.Contains(line, "btrfs") && !others {
			tr.Mounts = append(tr.Mounts, line)
		}
	}
	tr.Loops = loopsOf(t, dir)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		to, err := os.Readlink("/proc/self/fd/" + fd.Name())
		// The Go runtime keeps some of these for itself, from the first use on.
		if err != nil || strings.HasPrefix(to, "anon_inode:[event") || strings.HasPrefix(to, "anon_inode:[pidfd") || strings.Contains(to, "/proc/") {
			continue
		}
		tr.Descriptors = append(tr.Descriptors, to)
	}
	slices.Sort(tr.Descriptors)
	return tr
}

// loopsOf returns the loop devices whose file is in dir.
func loopsOf(t *testing.T, dir string) []string {
	t.Helper()
	bound, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	var devices []string
	for _, sys := range bound {
		file, err := os.ReadFile(sys)
		if err == nil && strings.HasPrefix(string(file), dir+"/") {
			devices = append(devices, strings.Split(sys, "/")[3])
		}
	}
	return devices
}

// nothingLeft compares the traces now with those at the end of the test.
func nothingLeft(t *testing.T) {
	t.Helper()
	dir := filepath.Dir(t.TempDir())
	before := look(t, dir)
	t.Cleanup(func() {
		// A loop device goes with its last user; where a device manager runs,
		// that may be the one that looks at it just now.
		until(t, "the loop devices of the test are gone", func() bool { return len(loopsOf(t, dir)) == 0 })
		if diff := cmp.Diff(before, look(t, dir)); diff != "" {
			t.Errorf("traces (-before +after):\n%s", diff)
		}
	})
}

// atOnce is for Exchange: nobody uses the old content.
func atOnce() error { return nil }

// until waits for what the kernel does in its own time.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !f() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never came true: %s", what)
		}
	}
}

// at returns a path that leads into an open directory.
func at(fd int, path string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", fd, path) }

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
