// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

func newAgent(i runtime.Instance) *agent.Client { return agent.NewClient(i.Dial) }

const hog = "python3 -c 'b=[]\nwhile True: b.append(bytearray(8<<20))'"

func limits(t *testing.T, s *suite) {
	t.Run("MemoryIsLimitedAndTheCauseIsNamed", func(t *testing.T) {
		s.need(t, runtime.LimitMemory)
		b := s.create(t, s.spec())
		other := s.create(t, s.spec())
		o := b.run(hog)
		if o.ExitCode != 137 || o.Cause != sandbox.CauseOOM {
			t.Errorf("got exit code %d, cause %q (%s), want 137 and oom; stderr %q", o.ExitCode, o.Cause, o.CauseDetail, o.Stderr)
		}
		b.ok("echo the sandbox lives on")
		other.ok("echo so do the others")
	})
	t.Run("PidsAreLimitedAndTheCauseIsNamed", func(t *testing.T) {
		s.need(t, runtime.LimitPids)
		b := s.create(t, s.spec())
		other := s.create(t, s.spec())
		o := b.run("for i in $(seq 200); do sleep 30 & done; wait")
		if o.ExitCode == 0 || o.Cause != sandbox.CausePids {
			t.Errorf("got exit code %d, cause %q (%s), want a failure by pids; stderr %q", o.ExitCode, o.Cause, o.CauseDetail, o.Stderr)
		}
		other.ok("echo the others live on")
	})
	t.Run("AForkBombHarmsNobodyAndCanBeStopped", func(t *testing.T) {
		s.need(t, runtime.LimitPids)
		b := s.create(t, s.spec())
		other := s.create(t, s.spec())
		o := b.exec(agent.Command{Shell: "bomb() { bomb | bomb & }; bomb; sleep 60", Timeout: 2 * time.Second})
		if o.ExitCode == 0 {
			t.Errorf("the bomb ended well: %+v", o.Result)
		}
		other.ok("for i in 1 2 3; do /bin/true; done")
		if err := b.Stop(t.Context(), 0); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	t.Run("CPUIsLimited", func(t *testing.T) {
		s.need(t, runtime.LimitCPU)
		spec := s.spec()
		spec.Limits.CPU = 0.25
		b := s.create(t, spec)
		// The CPU time that was got in a second of the clock.
		got := b.ok("python3 -c 'import time\nt=time.monotonic(); c=time.process_time()\nwhile time.monotonic()-t<1.5: pass\nprint(int(100*(time.process_time()-c)/1.5))'")
		if len(got) > 2 || got > "45" {
			t.Errorf("a busy loop got %s %% of a core, want about 25", got)
		}
	})
	t.Run("DiskIsLimitedAndOthersAreNotHarmed", func(t *testing.T) {
		s.need(t, runtime.LimitDisk)
		spec := s.spec()
		spec.Limits.DiskMB = 32
		b := s.create(t, spec)
		other := s.create(t, s.spec())
		o := b.run("head -c 100000000 /dev/zero > /workspace/big && sync")
		if o.ExitCode == 0 {
			t.Errorf("100 MB fit into 32 MiB: %+v", o.Result)
		}
		if !strings.Contains(o.Stderr, "quota") && !strings.Contains(o.Stderr, "space") {
			t.Errorf("stderr does not name the full disk: %q", o.Stderr)
		}
		other.ok("head -c 50000000 /dev/zero > /workspace/big && sync && rm /workspace/big")
		b.ok("rm /workspace/big && echo small > /workspace/small && cat /workspace/small")
	})
	t.Run("AFullDiskStartsAgainAndIsStillFull", func(t *testing.T) {
		s.need(t, runtime.LimitDisk)
		spec := s.spec()
		spec.Limits.DiskMB = 16
		b := s.create(t, spec)
		// Small files too, until not one more name fits.
		b.run("head -c 14000000 /dev/zero > /workspace/big; i=0; while [ $i -lt 20000 ] && echo x > /workspace/f$i; do i=$((i+1)); done; head -c 100000000 /dev/zero >> /workspace/big")
		for range 3 {
			if err := b.Stop(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if err := b.Start(t.Context(), spec); err != nil {
				t.Fatalf("a sandbox whose disk is full does not start: %v", err)
			}
			if o := b.run("head -c 8000000 /dev/zero > /workspace/more && sync"); o.ExitCode == 0 {
				t.Error("8 MB more fit into a full disk")
			}
		}
		b.ok("rm -rf /workspace/* && sync && echo small > /workspace/small && cat /workspace/small")
	})
}

func concurrency(t *testing.T, s *suite) {
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			spec := s.spec()
			i, err := s.driver.Create(t.Context(), spec)
			if err != nil {
				t.Errorf("Create: %v", err)
				return
			}
			b := &box{t: t, Instance: i, agent: newAgent(i)}
			o, err := b.tryExec(t.Context(), agent.Command{Shell: "echo hi > f; cat f"})
			if err != nil || o.Stdout != "hi\n" {
				t.Errorf("got %+v, %v", o, err)
			}
			if err := i.Stop(t.Context(), 0); err != nil {
				t.Errorf("Stop: %v", err)
			}
			if err := i.Start(t.Context(), spec); err != nil {
				t.Errorf("Start: %v", err)
			}
			if err := i.Remove(t.Context()); err != nil {
				t.Errorf("Remove: %v", err)
			}
		})
	}
	wg.Wait()
	list, err := s.driver.List(t.Context())
	if err != nil || len(list) != 0 {
		t.Errorf("List after all were removed: %v, %v", list, err)
	}
}
