// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/bench/tally"
	"sandpit.dev/internal/skiptest"
)

// flushesVariable makes the test's program one that flushes a file so often, as its first number says, and
// then runs itself with the numbers that are left.
const flushesVariable = "SANDPIT_TEST_FLUSHES"

// watchVariable makes it one that tries to watch itself, and says what comes of it.
const watchVariable = "SANDPIT_TEST_WATCH"

func TestMain(m *testing.M) {
	if os.Getenv(watchVariable) != "" {
		c, err := tally.Watch(os.Getpid())
		if err == nil {
			err = c.Close()
		}
		fmt.Printf("%v %v", tally.Unsupported(err), err)
		return
	}
	if plan, ok := os.LookupEnv(flushesVariable); ok {
		if err := act(strings.Split(plan, " ")); err != nil {
			_, _ = io.WriteString(os.Stderr, err.Error()+"\n")
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// act waits for the end of its input, and flushes in a thread of its own each time.
func act(plan []string) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	times, err := strconv.Atoi(plan[0])
	if err != nil {
		return err
	}
	if err := flush(times); err != nil {
		return err
	}
	if len(plan) == 1 {
		return nil
	}
	next := command(plan[1:])
	next.Stderr = os.Stderr
	return next.Run()
}

func command(plan []string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), flushesVariable+"="+strings.Join(plan, " "))
	return cmd
}

func flush(times int) error {
	file, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	done := make(chan struct{})
	for range times {
		go func() {
			runtime.LockOSThread() // for ever: the next one has a new thread
			_ = file.Sync()        // EINVAL, and counted all the same
			done <- struct{}{}
		}()
		<-done
	}
	return nil
}

func TestCallsAreCountedByNameAndByWhoMakesThem(t *testing.T) {
	root := command([]string{"7", "5", "3", "2"})
	root.Stderr = os.Stderr
	wait, err := root.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = wait.Close()
		_ = root.Wait() // it has been waited for, unless the test failed
	})
	c, err := tally.Watch(root.Process.Pid)
	if err != nil {
		if tally.Unsupported(err) {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	before := c.Read()
	if err := flush(11); err != nil { // ours do not count
		t.Fatal(err)
	}
	if err := wait.Close(); err != nil {
		t.Fatal(err)
	}
	if err := root.Wait(); err != nil {
		t.Fatal(err)
	}
	counts := c.Read().Since(before)
	for _, want := range []struct {
		role  tally.Role
		name  string
		count uint64
	}{
		{tally.Root, "fsync", 7}, {tally.Started, "fsync", 0}, {tally.Program, "fsync", 5},
		{tally.Launched, "fsync", 0}, {tally.Below, "fsync", 3 + 2},
		{tally.Root, "execve", 0}, {tally.Started, "execve", 1}, {tally.Program, "execve", 0},
		{tally.Launched, "execve", 1}, {tally.Below, "execve", 1},
	} {
		if got := counts.Of([]string{want.name}, want.role); got != want.count {
			t.Errorf("%s made %d calls of %s, want %d", want.role, got, want.name, want.count)
		}
	}
	if got := counts.Of([]string{"fsync", "execve"}, tally.Root, tally.Started, tally.Below); got != 7+1+6 {
		t.Errorf("%d calls of two names by three roles, want %d", got, 7+1+6)
	}
	for role, want := range map[tally.Role]bool{
		tally.Root: false, tally.Started: true, tally.Program: false, tally.Launched: true, tally.Below: true,
	} {
		// Go's runtime may make one or two to try what the kernel can, beside the one that we ask for.
		if got := counts.Births(role); (got > 0) != want || got > 3 {
			t.Errorf("%d processes began as %s, want some: %v", got, role, want)
		}
	}
	if all := counts.Total(tally.Below); all <= 6 {
		t.Errorf("%d calls in all below, want more than those of two names", all)
	}
}

func TestNothingIsCountedByNumbersThatAreNotTheKernels(t *testing.T) {
	skiptest.WithoutRoot(t, "it makes a pid namespace")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), watchVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if said := string(out); !strings.HasPrefix(said, "true we are in a pid namespace of our own") {
		t.Errorf("in a pid namespace of its own it says %q, want that it is not supported", said)
	}
}

func TestName(t *testing.T) {
	for n, want := range map[int]string{unix.SYS_FSYNC: "fsync", unix.SYS_CLONE3: "clone3", 509: "call 509"} {
		if got := tally.Name(n); got != want {
			t.Errorf("the name of %d is %q, want %q", n, got, want)
		}
	}
}
