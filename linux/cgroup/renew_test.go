// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup/cgroupfs"
)

// What commands left is gone, and the next owner has the files.
func TestRenew(t *testing.T) {
	d := openHost(t, Kill)
	g := create(t, d, Limits{})
	makeAgent(t, g)
	cmd := exec.Command("/bin/sleep", "1000")
	start(t, g, cmd)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Renew(ended, owner+1); !fault.Is(err, fault.State) {
		t.Errorf("with a process left: %v", err)
	}
	if err := g.KillCommands(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for range 2 { // twice is fine
		if err := g.Renew(t.Context(), owner+1); err != nil {
			t.Fatal(err)
		}
	}
	left, err := cgroupfs.Children(d.tree.dir, g.id+"/cmd")
	if err != nil || len(left) > 0 {
		t.Errorf("groups are left: %q, %v", left, err)
	}
	for _, file := range []string{"cgroup.procs", "cmd", "cmd/cgroup.procs"} {
		var st unix.Stat_t
		if err := unix.Fstatat(d.tree.dir, filepath.Join(g.id, file), &st, 0); err != nil || int(st.Uid) != owner+1 {
			t.Errorf("%s belongs to %d, %v; want %d", file, st.Uid, err, owner+1)
		}
	}
	// A process can be born where the first one was.
	dir, err := g.RebirthDir()
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	next := exec.Command("/bin/sleep", "1000")
	next.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := next.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = next.Wait()
	if err := g.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.Renew(t.Context(), owner); !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.State) {
		t.Errorf("of a group that is gone: %v", err)
	}
}
