// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

func (b *box) resize(l sandbox.Limits) error {
	b.t.Helper()
	r, ok := b.Instance.(runtime.Resizer)
	if !ok {
		b.t.Fatal("Probe claims resize and the instance is no runtime.Resizer")
	}
	return r.Resize(b.t.Context(), l)
}

// holds is a command that keeps so many MiB of memory.
func holds(mb string) agent.Command {
	return agent.Command{Shell: "exec python3 -u -c 'import time\nb = bytearray(" + mb + " << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint(\"begun\")\ntime.sleep(600)'"}
}

func resizes(t *testing.T, s *suite) {
	s.need(t, runtime.Resize)
	t.Run("AMemoryLimitUnderWhatIsInUseIsRefused", func(t *testing.T) {
		spec := s.spec()
		b := s.create(t, spec)
		b.begin(holds("150"), "begun\n")
		less := spec.Limits
		less.MemoryMB = 64
		wantCode(t, "Resize", b.resize(less), fault.Conflict)
		b.ok("true")
		less.MemoryMB = 240
		if err := b.resize(less); err != nil {
			t.Errorf("a limit over what is in use: %v", err)
		}
	})
	t.Run("MemoryGrowsAndShrinks", func(t *testing.T) {
		s.need(t, runtime.LimitMemory)
		spec := s.spec()
		b := s.create(t, spec)
		const most = "python3 -c 'b = bytearray(300 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint(len(b))'"
		for _, step := range []struct {
			mb    int
			works bool
		}{{256, false}, {512, true}, {128, false}, {384, true}} {
			l := spec.Limits
			l.MemoryMB = step.mb
			if err := b.resize(l); err != nil {
				t.Fatalf("Resize to %d MiB: %v", step.mb, err)
			}
			o := b.run(most)
			if works := o.ExitCode == 0; works != step.works || !works && o.Cause != sandbox.CauseOOM {
				t.Errorf("300 MiB within %d: got %+v, want that it works: %v", step.mb, o, step.works)
			}
		}
	})
	t.Run("CPUGrowsWhileACommandRuns", func(t *testing.T) {
		s.need(t, runtime.LimitCPU)
		spec := s.spec()
		spec.Limits.CPU = 0.05
		b := s.create(t, spec)
		// It ends when it got thrice of that in a second.
		p := b.begin(agent.Command{Shell: `exec python3 -u -c 'import time
print("begun")
while True:
    t, c = time.monotonic(), time.process_time()
    while time.monotonic() - t < 1: pass
    if time.process_time() - c > 0.15: break
print("faster")'`}, "begun\n")
		spec.Limits.CPU = 1
		if err := b.resize(spec.Limits); err != nil {
			t.Fatal(err)
		}
		if o, err := collect(t.Context(), p); err != nil || o.Stdout != "faster\n" {
			t.Errorf("got %+v, %v", o, err)
		}
	})
	t.Run("PidsGrow", func(t *testing.T) {
		s.need(t, runtime.LimitPids)
		spec := s.spec()
		spec.Limits.Pids = 32
		b := s.create(t, spec)
		const many = `python3 -c '
import os, time
for n in range(60):
    if os.fork() == 0: time.sleep(0.5); os._exit(0)
for n in range(60): os.wait()'`
		if o := b.run(many); o.Cause != sandbox.CausePids {
			t.Errorf("60 processes within 32: got %+v", o)
		}
		spec.Limits.Pids = 128
		if err := b.resize(spec.Limits); err != nil {
			t.Fatal(err)
		}
		if o := b.run(many); o.ExitCode != 0 {
			t.Errorf("60 processes within 128: got %+v", o)
		}
	})
	t.Run("TheDiskGrowsAndShrinks", func(t *testing.T) {
		s.need(t, runtime.LimitDisk)
		spec := s.spec()
		spec.Limits.DiskMB = 64
		b := s.create(t, spec)
		const fill = "rm -f more; head -c 100M /dev/urandom > more && sync more"
		if o := b.run(fill); o.ExitCode == 0 || !full(o) {
			t.Errorf("100 MiB within 64: got %+v", o)
		}
		spec.Limits.DiskMB = 256
		if err := b.resize(spec.Limits); err != nil {
			t.Fatal(err)
		}
		b.ok("rm more; sync .; " + fill)
		spec.Limits.DiskMB = 32
		if err := b.resize(spec.Limits); err != nil {
			t.Fatalf("a limit under what is in use: %v", err)
		}
		if o := b.run("head -c 40M /dev/urandom > again && sync again"); o.ExitCode == 0 || !full(o) {
			t.Errorf("40 MiB more within 32: got %+v", o)
		}
		if got := b.ok("stat -c %s more"); got != "104857600" {
			t.Errorf("what was there has %s bytes", got)
		}
	})
	t.Run("ItHoldsAfterTheServersEnd", func(t *testing.T) {
		s.need(t, runtime.Reopen)
		s.need(t, runtime.LimitMemory)
		spec := s.spec()
		b := s.createFor(t, spec)
		spec.Limits.MemoryMB = 128
		if err := b.resize(spec.Limits); err != nil {
			t.Fatal(err)
		}
		b = s.reopen(t, b)
		if o := b.run(hog); o.Cause != sandbox.CauseOOM {
			t.Errorf("got %+v", o)
		}
		spec.Limits.MemoryMB = 512
		if err := b.resize(spec.Limits); err != nil {
			t.Fatal(err)
		}
		b.ok("python3 -c 'b = bytearray(300 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1'")
	})
}

// full reports whether a command failed since a limit of storage was reached.
func full(o outcome) bool {
	return strings.Contains(o.Stderr, "No space left") || strings.Contains(o.Stderr, "quota exceeded")
}
