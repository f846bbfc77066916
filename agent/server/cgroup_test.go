// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server"
)

// openGroups makes groups in a directory of the test's, and gives what is in it.
func openGroups(t *testing.T) (g server.Groups, names func() []string) {
	t.Helper()
	path := cgroupDir(t)
	if path == "" {
		t.Skip("no cgroup v2 here")
	}
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return server.Cgroups(dir), func() []string {
		entries, err := os.ReadDir(path)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, e := range entries {
			if e.IsDir() {
				all = append(all, e.Name())
			}
		}
		return all
	}
}

func newGroup(t *testing.T, g server.Groups, id string) server.Group {
	t.Helper()
	group, err := g.New(id)
	if err != nil {
		t.Fatal(err)
	}
	return group
}

func startIn(t *testing.T, group server.Group, argv ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: group.FD()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func TestAGroupIsUsedAgainOnceItIsEmpty(t *testing.T) {
	t.Parallel()
	g, names := openGroups(t)
	first := newGroup(t, g, "a")
	cmd := startIn(t, first, "sleep", "600")
	if err := first.Remove(); !errors.Is(err, unix.EBUSY) {
		t.Fatalf("with a member it was given up: %v", err)
	}
	second := newGroup(t, g, "b")
	if got := names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("groups %v: one that has a member was used again", got)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err := first.Empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Remove(), second.Remove()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		third := newGroup(t, g, "c")
		if err := startIn(t, third, "true").Wait(); err != nil {
			t.Errorf("a command in a group that was used before: %v", err)
		}
		if err := third.Empty(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := third.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("groups %v", got)
	}
}

// The kernel would kill what is born in it.
func TestAGroupThatWasKilledIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	g, names := openGroups(t)
	group := newGroup(t, g, "a")
	cmd := startIn(t, group, "sleep", "600")
	if err := group.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := group.Empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := group.Remove(); err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) != 0 {
		t.Errorf("groups %v", got)
	}
	if err := startIn(t, newGroup(t, g, "b"), "true").Wait(); err != nil {
		t.Errorf("in the next group: %v", err)
	}
}

func TestFewEmptyGroupsAreKept(t *testing.T) {
	t.Parallel()
	g, names := openGroups(t)
	var groups []server.Group
	for n := range 5 {
		groups = append(groups, newGroup(t, g, fmt.Sprint(n)))
	}
	for _, group := range groups {
		if err := group.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(); len(got) != 2 {
		t.Errorf("groups %v", got)
	}
}
