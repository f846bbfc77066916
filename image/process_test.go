// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
)

// The test binary plays a second server: with childVariable set it builds the
// recipe in that directory and prints the image's root.
const (
	childVariable = "SANDPIT_IMAGE_TEST_CHILD"
	hangVariable  = "SANDPIT_IMAGE_TEST_HANG"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		os.Exit(child(dir, os.Getenv(hangVariable) != ""))
	}
	os.Exit(m.Run())
}

func child(dir string, hang bool) int {
	s, err := open(Options{Dir: dir}, []recipe{countedRecipe(hang)})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer s.Close()
	fmt.Println("open")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return 1
	}
	img, err := s.Ensure(context.Background(), "tree")
	fmt.Println(img.Root, err)
	return 0
}

// countedRecipe leaves a line in the cache for each run of each stage. If hang is set, it hangs
// in its second stage, in programs of its own.
func countedRecipe(hang bool) recipe {
	r := treeRecipe(1, nil)
	count := func(st *stage) {
		run, name := st.Run, st.Name
		st.Run = func(ctx context.Context, w *work) error {
			if err := os.MkdirAll(w.cache, 0o755); err != nil {
				return err
			}
			f, err := os.OpenFile(filepath.Join(w.cache, "runs"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
			if err != nil {
				return err
			}
			defer f.Close()
			if _, err := fmt.Fprintln(f, name); err != nil {
				return err
			}
			if hang && name == "configure" {
				// What a build leaves at the worst: a program with a child, and a mount.
				return w.confined(ctx, hostEnv(), os.Stdout, "sh", "-c",
					`mount -t tmpfs none "$1" && sleep 600 & echo hanging; sleep 600; true`, "sh", w.root)
			}
			return run(ctx, w)
		}
	}
	for i := range r.Stages {
		count(&r.Stages[i])
	}
	return r
}

func runs(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "cache", "runs"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(data)), " ")
}

type childProcess struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startChild(t *testing.T, dir string, hang bool) *childProcess {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^$")
	cmd.Env = append(os.Environ(), childVariable+"="+dir)
	if hang {
		cmd.Env = append(cmd.Env, hangVariable+"=1")
	}
	cmd.Stderr = os.Stderr
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
	c := &childProcess{cmd, in, bufio.NewReader(out)}
	if line := c.line(t); line != "open" {
		t.Fatalf("the child said %q", line)
	}
	return c
}

func (c *childProcess) line(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the child's output ended: %q, %v", line, err)
	}
	return strings.TrimSpace(line)
}

func (c *childProcess) build(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(c.in, "build\n"); err != nil {
		t.Fatal(err)
	}
}

func TestTwoProcesses(t *testing.T) {
	t.Run("OneBuildsAndTheOtherFindsItsImage", func(t *testing.T) {
		dir := t.TempDir()
		a, b := startChild(t, dir, false), startChild(t, dir, false)
		a.build(t)
		b.build(t)
		gotA, gotB := a.line(t), b.line(t)
		for _, c := range []*childProcess{a, b} {
			if err := c.Wait(); err != nil {
				t.Error(err)
			}
		}
		if gotA != gotB || !strings.HasSuffix(gotA, rootName+" <nil>") {
			t.Errorf("one says %q, the other %q", gotA, gotB)
		}
		if got := runs(t, dir); got != "copy configure" {
			t.Errorf("the stages ran %q, want each once", got)
		}
	})

	t.Run("AKilledBuildLeavesNothingRunningAndIsContinued", func(t *testing.T) {
		skiptest.WithoutRoot(t, "it makes mount and process namespaces")
		dir := t.TempDir()
		c := startChild(t, dir, true)
		c.build(t)
		if line := c.line(t); line != "hanging" {
			t.Fatalf("the child said %q", line)
		}
		if l, err := tryLock(dir); err != nil || l != nil {
			t.Fatalf("the lock is free while the child builds (%v)", err)
		}
		below := descendants(t, c.Process.Pid)
		if len(below) < 2 {
			t.Fatalf("the child has %d programs, want some", len(below))
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		for _, fd := range below {
			// A process descriptor can be read when its process is gone.
			waitExit(t, fd)
		}
		if names := visible(t, dir); names != nil {
			t.Errorf("the killed build left %q", names)
		}

		s := openDir(t, dir, countedRecipe(false))
		if _, err := s.Find(t.Context(), "tree"); err == nil {
			t.Error("what the killed build left counts as an image")
		}
		img, err := s.Ensure(t.Context(), "tree")
		if err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(filepath.Join(img.Root, "etc/leaf")); err != nil || string(data) != "green\n" {
			t.Errorf("the image's file holds %q (%v)", data, err)
		}
		if got := runs(t, dir); got != "copy configure configure" {
			t.Errorf("the stages ran %q: the first was to be kept, the second to run again", got)
		}
	})
}

// descendants returns a process descriptor for every process below pid.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	var fds []int
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		data, err := os.ReadFile(task)
		if err != nil {
			continue // the thread ended
		}
		for _, word := range strings.Fields(string(data)) {
			below, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			fd, err := unix.PidfdOpen(below, 0)
			if err != nil {
				continue // it ended
			}
			t.Cleanup(func() { _ = unix.Close(fd) })
			fds = append(append(fds, fd), descendants(t, below)...)
		}
	}
	return fds
}

func waitExit(t *testing.T, pidfd int) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 10_000)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n != 1 {
			t.Fatalf("a program of the killed build still runs (%d, %v)", n, err)
		}
		return
	}
}
