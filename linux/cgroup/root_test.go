// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// What is at the top of a container's cgroups is a group like any.
func TestContainer(t *testing.T) {
	const ns, all = "sandpit/test0001", "cpu memory pids"

	t.Run("WithProcessesInItsRootTheRemedySaysSo", func(t *testing.T) {
		m := newModel(t, all)
		m.contain("1\n")
		d := openModel(t, m)
		e := wantCode(t, d.Info().Err(CPU), fault.Unsupported)
		want := "cpu: cannot use the cgroups at " + m.root + ": device or resource busy"
		if e.Message != want || e.Remedy == "" {
			t.Errorf("got %q with remedy %q, want %q", e.Message, e.Remedy, want)
		}
		if err := d.Info().Err(Kill); err != nil {
			t.Errorf("kill needs no controller: %v", err)
		}
		for _, f := range []Feature{Memory, PIDs} {
			if e := wantCode(t, d.Info().Err(f), fault.Unsupported); e.Remedy == "" {
				t.Errorf("%s: no remedy", f)
			}
		}
		// One controller at the top, and no group of ours could have a process.
		if got := m.get(filepath.Join(m.root, ns), "cgroup.type"); got != "domain" {
			t.Errorf("our groups are %s", got)
		}
		if _, err := d.Create("abcd", Limits{}, 0); err != nil {
			t.Error(err)
		}
	})

	t.Run("WithAnEmptyRootAllWorks", func(t *testing.T) {
		m := newModel(t, all)
		m.contain("")
		d := openModel(t, m)
		for _, f := range Features() {
			if err := d.Info().Err(f); err != nil {
				t.Error(err)
			}
		}
	})

	t.Run("WithAControllerThatItIsNotGivenTheRemedySaysSo", func(t *testing.T) {
		m := newModel(t, "cpu")
		m.contain("")
		d := openModel(t, m)
		if err := d.Info().Err(CPU); err != nil {
			t.Error(err)
		}
		e := wantCode(t, d.Info().Err(PIDs), fault.Unsupported)
		if want := "pids: the group at " + m.root + " is not given the pids controller by the one above it"; e.Message != want || e.Remedy == "" {
			t.Errorf("got %q with remedy %q, want %q", e.Message, e.Remedy, want)
		}
	})

	t.Run("GroupsThatCanHaveNoProcessesAreRefused", func(t *testing.T) {
		m := newModel(t, all)
		m.contain("1\n")
		if err := errors.Join(
			m.Mkdir(unix.AT_FDCWD, filepath.Join(m.root, "sandpit")),
			m.Mkdir(unix.AT_FDCWD, filepath.Join(m.root, ns)),
		); err != nil {
			t.Fatal(err)
		}
		m.put(filepath.Join(m.root, ns), "cgroup.type", "domain invalid\n")
		d := openModel(t, m)
		for _, f := range Features() {
			if e := wantCode(t, d.Info().Err(f), fault.Unsupported); e.Remedy == "" {
				t.Errorf("%s: no remedy", f)
			}
		}
		if _, err := os.Stat(filepath.Join(m.root, "sandpit")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("groups are left that are of no use: %v", err)
		}
	})
}
