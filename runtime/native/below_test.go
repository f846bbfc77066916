// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"os"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/linux/spawn"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// A sandbox's root lies over the one that its process 1 was born with. Who has every
// capability there, as no command has, can take it away, and finds an empty one.
func TestBelowTheRootOfASandboxIsNothing(t *testing.T) {
	needRoot(t)
	d := open(t, t.TempDir(), "")
	t.Cleanup(func() { _ = d.Close() })
	i, err := d.Create(t.Context(), runtime.Spec{
		ID: sandbox.NewID(), Image: runtime.Image{Root: imagetest.Python(t).Root}, Hostname: "box",
		Limits: sandbox.Limits{CPU: 2, MemoryMB: 512, DiskMB: 512, Pids: 128},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	pidfd := i.(*native.Instance).Pidfd()
	host, err := os.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = host.Close() }()
	const openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC

	var script spawn.Script
	root := script.Text("/")
	list := func(path string) spawn.Arg {
		return script.Open("open "+path, spawn.Never, unix.SYS_OPENAT, spawn.At(), script.Text(path), spawn.Int(openDir))
	}
	self := list("/")
	mounts := script.Open("open the mounts", spawn.Never, unix.SYS_OPENAT, spawn.Param(0), script.Text("thread-self/ns/mnt"), spawn.Int(unix.O_RDONLY|unix.O_CLOEXEC))
	script.Do("take the root away", spawn.Never, unix.SYS_UMOUNT2, root, spawn.Int(unix.MNT_DETACH))
	script.Do("enter the mounts anew", spawn.Never, unix.SYS_SETNS, mounts, spawn.Int(unix.CLONE_NEWNS))
	script.Do("write there", unix.EROFS, unix.SYS_MKDIRAT, spawn.At(), script.Text("/new"), spawn.Int(0o755))
	script.Do("uncover it too", unix.EINVAL, unix.SYS_UMOUNT2, root, spawn.Int(unix.MNT_DETACH))
	script.Do("uncover what is below its /proc", unix.EINVAL, unix.SYS_UMOUNT2, script.Text("/proc"), spawn.Int(unix.MNT_DETACH))
	below, proc := list("/"), list("/proc") // after all attempts
	got, err := script.Run(pidfd, host.Fd())
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	names := func(a spawn.Arg) []string {
		f := got.Take(a, "")
		defer func() { _ = f.Close() }()
		n, err := f.Readdirnames(-1)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := names(self); len(n) < 5 {
		t.Errorf("the root has only %q", n)
	}
	if n := names(below); len(n) != 1 || n[0] != "proc" {
		t.Errorf("below the root are %q, want an empty /proc", n)
	}
	shown := names(proc)
	if !slices.Contains(shown, "meminfo") {
		t.Errorf("its /proc is uncovered: %q", shown)
	}
	for _, n := range shown {
		if _, err := strconv.Atoi(n); err == nil {
			t.Errorf("below the root is a /proc that shows process %s", n)
		}
	}
}
