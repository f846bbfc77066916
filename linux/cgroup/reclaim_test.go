// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// await starts a command and waits until it says that it is up.
func await(t *testing.T, g *Group, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, g, cmd)
	if line := bufio.NewScanner(out); !line.Scan() || line.Text() != "up" {
		t.Fatalf("got %q, %v", line.Text(), line.Err())
	}
}

func TestALimitUnderTheMemoryInUseChangesNothing(t *testing.T) {
	d := openHost(t, Memory, CPU, PIDs, Kill)
	before := Limits{CPU: 1, MemoryBytes: 1 << 30, PIDs: 50}
	g := create(t, d, before)
	await(t, g, self("hold"))
	wantCode(t, g.SetLimits(Limits{CPU: 2, MemoryBytes: 16 << 20, PIDs: 60}), fault.Conflict)
	if got, err := g.Limits(); err != nil || got != before {
		t.Errorf("got %+v, %v; want %+v", got, err, before)
	}
	want := Limits{CPU: 0.5, MemoryBytes: 512 << 20, PIDs: 40}
	if err := g.SetLimits(want); err != nil {
		t.Fatal(err)
	}
	if got, err := g.Limits(); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestReclaimTakesTheCacheOfWhatStandsStill(t *testing.T) {
	d := openHost(t, Memory, Freeze, Kill)
	g := create(t, d, Limits{MemoryBytes: 256 << 20})
	dir, err := os.MkdirTemp("/var/tmp", "sandpit-cgroup-test-") // where /tmp is memory, its pages are no cache
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "file")
	await(t, g, exec.Command("/bin/sh", "-c", "head -c 64M /dev/zero >"+file+"; sync "+file+"; echo up; exec sleep 1000"))
	if err := g.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := g.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if before.MemoryBytes < 64<<20 {
		t.Skipf("this file system's cache is nobody's: %d bytes in use", before.MemoryBytes)
	}
	if err := g.Reclaim(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := g.Usage()
	if err != nil || after.MemoryBytes > before.MemoryBytes/2 {
		t.Errorf("it used %d bytes, and then %d, %v", before.MemoryBytes, after.MemoryBytes, err)
	}
	if frozen, err := g.Frozen(); err != nil || !frozen {
		t.Errorf("frozen: %v, %v", frozen, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Reclaim(ctx); err != nil {
		t.Errorf("one that may take no time: %v", err)
	}
}

func TestFrozenIsTheLastWord(t *testing.T) {
	d := openHost(t, Freeze)
	g := create(t, d, Limits{})
	for _, want := range []bool{false, true, true, false} {
		verb := g.Thaw
		if want {
			verb = g.Freeze
		}
		if err := verb(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := g.Frozen(); err != nil || got != want {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
	}
	if err := g.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := g.Frozen()
	wantCode(t, err, fault.NotFound)
}

// What freezing and thawing take, of a sandbox with six processes that sleep.
func BenchmarkFreeze(b *testing.B) {
	d, err := Open(Options{Namespace: randomName()})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	g, err := d.Create(randomName(), Limits{}, owner)
	if err != nil {
		b.Fatal(err)
	}
	if err := g.Prepare(); err != nil {
		b.Fatal(err)
	}
	dir, err := g.Dir()
	if err != nil {
		b.Fatal(err)
	}
	defer dir.Close()
	for range 6 {
		cmd := exec.Command("/bin/sleep", "1000")
		cmd.SysProcAttr = &unix.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		defer cmd.Wait()
	}
	defer g.Kill()
	freezes, thaws := make([]time.Duration, b.N), make([]time.Duration, b.N)
	for i := range b.N {
		began := time.Now()
		if err := g.Freeze(b.Context()); err != nil {
			b.Fatal(err)
		}
		freezes[i] = time.Since(began)
		began = time.Now()
		if err := g.Thaw(b.Context()); err != nil {
			b.Fatal(err)
		}
		thaws[i] = time.Since(began)
	}
	report(b, map[string][]time.Duration{"freeze": freezes, "thaw": thaws})
}
