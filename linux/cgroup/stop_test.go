// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup/cgroupfs"
)

func TestFreezeStopsAndThawGoesOn(t *testing.T) {
	d := openHost(t, Freeze, Kill)
	g := create(t, d, Limits{})
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(8); err != nil {
		t.Fatal(err)
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(b)
	count := func() int64 { return atomic.LoadInt64((*int64)(unsafe.Pointer(&b[0]))) }
	cmd := self("spin")
	cmd.ExtraFiles = []*os.File{f}
	start(t, g, cmd)
	moves := func(from int64) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); count() == from; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatal("it does not run")
			}
		}
	}
	moves(0)
	for range 2 { // twice is fine
		if err := g.Freeze(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	at := count()
	if err := exec.Command("/bin/true").Run(); err != nil { // time enough for a spinner
		t.Fatal(err)
	}
	if got := count(); got != at {
		t.Errorf("a frozen process went from %d to %d", at, got)
	}
	for range 2 {
		if err := g.Thaw(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	moves(at)
	// Frozen processes can be killed.
	if err := g.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if err := g.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The agent stands at once, and is no reason to take the commands for standing too.
func TestWhatIsFrozenIsInTheMiddleOfNothing(t *testing.T) {
	d := openHost(t, Freeze, Kill)
	g := create(t, d, Limits{})
	makeAgent(t, g)
	startFirst(t, g)
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := self("write")
	cmd.ExtraFiles = []*os.File{f}
	start(t, g, cmd)
	var last byte
	for moved := 0; moved < 10; {
		if err := g.Freeze(t.Context()); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if len(whole) > 0 {
			if n := bytes.Count(whole, whole[:1]); n != len(whole) {
				t.Fatalf("%d bytes of %d are written", n, len(whole))
			}
			if whole[0] != last {
				last = whole[0]
				moved++
			}
		}
		if err := g.Thaw(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A command was killed, then process 1, and the command is not gone yet when the group is thawed.
func TestThawOfWhatIsKilled(t *testing.T) {
	d := openHost(t, Freeze, Kill)
	g := create(t, d, Limits{})
	makeAgent(t, g)
	first, command := startFirst(t, g), self("heavy") // it takes a while to free its memory
	await(t, g, command)
	if err := g.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	command.Process.Kill()
	if err := g.await(t.Context(), g.commands(), "frozen", 0); err != nil { // it is on its way
		t.Fatal(err)
	}
	first.Process.Kill()
	first.Wait()
	if err := g.Thaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	if frozen, err := g.Frozen(); err != nil || frozen {
		t.Errorf("frozen %v, %v", frozen, err)
	}
	// The next freeze, of another life in the group, waits until it stands.
	if err := g.await(t.Context(), g.id, "frozen", 0); err != nil {
		t.Error(err)
	}
}

func TestKillTakesTheWholeTree(t *testing.T) {
	d := openHost(t, Kill)
	g := create(t, d, Limits{})
	cmd := exec.Command("/bin/sh", "-c", `
		(setsid sh -c 'echo up; exec sleep 1000' &)
		setsid sh -c '(setsid sh -c "echo up; exec sleep 1000" &) ; exit' &
		(trap '' TERM HUP INT; echo up; exec sleep 1000) &
		exec sleep 1000`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, g, cmd)
	for lines, n := bufio.NewScanner(out), 0; n < 3; n++ {
		if !lines.Scan() || lines.Text() != "up" {
			t.Fatalf("got %q, %v", lines.Text(), lines.Err())
		}
	}
	dir := filepath.Join(d.tree.path, cgroupfs.Top, d.namespace, g.ID(), "cmd")
	groups, err := cgroupfs.Children(d.tree.dir, g.ID()+"/cmd")
	if err != nil || len(groups) != 1 {
		t.Fatalf("got groups %v, %v", groups, err)
	}
	pids := members(t, filepath.Join(dir, groups[0], "cgroup.procs"))
	if len(pids) < 4 {
		t.Fatalf("got processes %v, want at least 4", pids)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantCode(t, g.Remove(ctx), fault.State)
	if err := g.KillCommands(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one finds nothing
		if err := g.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, pid := range pids {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			continue
		}
		if i := bytes.LastIndexByte(stat, ')'); !bytes.Contains([]byte("ZX"), stat[i+2:i+3]) {
			t.Errorf("process %s lives: %s", pid, stat)
		}
	}
	if err := g.Kill(); err != nil {
		t.Errorf("killing what is gone: %v", err)
	}
}
