// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup/counter"
	"sandpit.dev/linux/cgroup/v1"
)

func TestLimitsStandInTheKernel(t *testing.T) {
	d := openHost(t, CPU, Memory, PIDs)
	want := Limits{CPU: 0.5, MemoryBytes: 64 << 20, PIDs: 20}
	g := create(t, d, want)
	got, err := g.Limits()
	if diff := cmp.Diff(got, want); err != nil || diff != "" {
		t.Errorf("Limits: %v (-got +want):\n%s", err, diff)
	}
	files := map[Feature]map[string]string{
		CPU:    {"cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000"},
		Memory: {"memory.limit_in_bytes": "67108864", "memory.memsw.limit_in_bytes": "67108864"},
		PIDs:   {"pids.max": "22"},
	}
	for f, values := range files {
		if d.Info().Version[f] != 1 {
			continue // cgroup2 has its own tests
		}
		for file, want := range values {
			if file == "memory.memsw.limit_in_bytes" && d.Info().Version[Swap] != 1 {
				continue
			}
			text, err := os.ReadFile(filepath.Join(v1Group(t, d, f, g.ID()), file))
			if got := strings.TrimSpace(string(text)); err != nil || got != want {
				t.Errorf("%s: got %q, %v, want %s", file, got, err, want)
			}
		}
	}
	for _, want := range []Limits{{CPU: 2, MemoryBytes: 256 << 20, PIDs: 4}, {MemoryBytes: 32 << 20}, {}, want} {
		if err := g.SetLimits(want); err != nil {
			t.Fatal(err)
		}
		got, err := g.Limits()
		if diff := cmp.Diff(got, want); err != nil || diff != "" {
			t.Errorf("SetLimits: %v (-got +want):\n%s", err, diff)
		}
	}
	_, err = d.Create(g.ID(), want, owner)
	wantCode(t, err, fault.Exists)
	if _, err := g.Limits(); err != nil {
		t.Errorf("the group did not survive a second Create: %v", err)
	}
}

func TestOutOfMemoryKillsTheCommandAndNotTheAgent(t *testing.T) {
	d := openHost(t, Memory, Kill)
	g := create(t, d, Limits{MemoryBytes: 64 << 20})
	f, err := g.OOMFile()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := counter.OOMKills(f); n != 0 || err != nil {
		t.Fatalf("before: got %d, %v", n, err)
	}
	cmd := self("hog")
	start(t, g, cmd)
	cmd.Wait()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != unix.SIGKILL {
		t.Errorf("the hog ended with %v, want SIGKILL", cmd.ProcessState)
	}
	if n, err := counter.OOMKills(f); n != 1 || err != nil {
		t.Errorf("got %d kills, %v, want 1", n, err)
	}
}

func TestForkBombStopsAtTheLimit(t *testing.T) {
	d := openHost(t, PIDs, Kill)
	const limit = 20
	g := create(t, d, Limits{PIDs: limit})
	f, err := g.PIDsFile()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// dash gives up at the first fork that fails; its children stay.
	cmd := exec.Command("/bin/sh", "-c", "for i in $(seq 100); do sleep 1000 & done; exit 0")
	start(t, g, cmd)
	if err := cmd.Wait(); err == nil {
		t.Error("100 processes fitted in a limit of 20")
	}
	u, err := g.Usage()
	if err != nil || u.PIDs > limit+v1.SpawnerThreads || u.PIDs < limit/2 {
		t.Errorf("got %d processes, %v, want up to %d", u.PIDs, err, limit+v1.SpawnerThreads)
	}
	if n, err := counter.PIDsRefused(f); n == 0 || err != nil {
		t.Errorf("got %d refusals, %v", n, err)
	}
	if err := exec.Command("/bin/true").Run(); err != nil {
		t.Errorf("the agent cannot fork: %v", err)
	}
}

// Means on a shared machine say little: the medians do.
func BenchmarkLife(b *testing.B) {
	d, err := Open(Options{Namespace: randomName()})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	created, removed := make([]time.Duration, b.N), make([]time.Duration, b.N)
	for i := range b.N {
		id := randomName()
		start := time.Now()
		g, err := d.Create(id, someLimits, owner)
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Prepare(); err != nil {
			b.Fatal(err)
		}
		created[i] = time.Since(start)
		start = time.Now()
		if err := g.Remove(b.Context()); err != nil {
			b.Fatal(err)
		}
		removed[i] = time.Since(start)
	}
	report(b, map[string][]time.Duration{"create": created, "remove": removed})
}

func report(b *testing.B, all map[string][]time.Duration) {
	for name, times := range all {
		slices.Sort(times)
		b.ReportMetric(float64(times[0].Microseconds()), "µs/"+name+"-min")
		b.ReportMetric(float64(times[b.N/2].Microseconds()), "µs/"+name+"-p50")
	}
}
