// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"testing"
)

func TestAStateFindsItsProcessAndNoOther(t *testing.T) {
	boot, err := BootID()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	if _, err := ReadState(dir, "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of an instance that is not up: %v, want that it does not exist", err)
	}
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	written, err := StateOf(cmd.Process.Pid, FirstUID, boot)
	if err == nil {
		err = written.Write(dir, "a")
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := ReadState(dir, "a")
	if err != nil || s != written {
		t.Fatalf("read %v, %v, want %v", s, err, written)
	}
	earlier := s
	earlier.Start--
	opens := func(s State, boot string) bool {
		t.Helper()
		pidfd, err := s.Open(boot)
		if err != nil {
			t.Fatal(err)
		}
		if pidfd == nil {
			return false
		}
		return pidfd.Close() == nil
	}
	if !opens(s, boot) {
		t.Error("its process is not found")
	}
	if opens(earlier, boot) {
		t.Error("a process that has its number since is taken for it")
	}
	if opens(s, "another boot") {
		t.Error("a process of another boot is taken for it")
	}
	pidfd, err := s.Open(boot)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pidfd.Close() }()
	for range 2 { // also of one that is gone
		if err := Kill(pidfd); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
	if !Ended(pidfd, 0) || opens(s, boot) {
		t.Error("a process that ended is found")
	}
}

func TestTheMarkOfAPauseIsOfOneLife(t *testing.T) {
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	last, now := State{PID: 10, Start: 1, Boot: "b"}, State{PID: 10, Start: 2, Boot: "b"}
	paused := func(s State) bool {
		t.Helper()
		p, err := s.Paused(dir, "a")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if paused(now) {
		t.Error("it is paused, and was not marked")
	}
	for _, s := range []State{last, now} { // the second over the first
		if err := s.MarkPaused(dir, "a"); err != nil {
			t.Fatal(err)
		}
		if !paused(s) {
			t.Errorf("%v was marked, and is not paused", s)
		}
	}
	if paused(last) {
		t.Error("the mark of another life counts")
	}
}
