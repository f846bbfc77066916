// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"fmt"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
)

func (b *box) use() runtime.Use {
	b.t.Helper()
	u, err := b.Instance.(runtime.Meter).Use(b.t.Context())
	if err != nil {
		b.t.Fatalf("Use: %v", err)
	}
	return u
}

// eventually reads what the instance uses until ok holds of it: what a command does is not counted at once everywhere.
func (b *box) eventually(what string, ok func(runtime.Use) bool) runtime.Use {
	b.t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		u := b.use()
		if ok(u) {
			return u
		}
		if time.Since(began) > time.Minute {
			b.t.Fatalf("%s: got %+v", what, u)
		}
	}
}

const (
	burn = `exec python3 -u -c 'print("begun")
while True: pass'`
	crowd   = 7
	newFile = 64 << 20
)

func meters(t *testing.T, s *suite) {
	t.Run("Processes", func(t *testing.T) { processes(t, s) })
	meter := func(t *testing.T) *box {
		b := s.create(t, s.spec())
		if _, ok := b.Instance.(runtime.Meter); !ok {
			t.Skip("the driver's instances are no runtime.Meters")
		}
		return b
	}
	t.Run("ABusyLoopIsCounted", func(t *testing.T) {
		b := meter(t)
		before := b.use()
		b.begin(agent.Command{Shell: burn}, "begun\n")
		last := before
		b.eventually("a busy loop's processor time", func(u runtime.Use) bool {
			if u.CPU < last.CPU {
				t.Errorf("processor time fell from %v to %v", last.CPU, u.CPU)
			}
			last = u
			return u.CPU >= before.CPU+500*time.Millisecond
		})
	})
	t.Run("WhatIsHeldIsCounted", func(t *testing.T) {
		b := meter(t)
		before := b.use()
		if before.MemoryBytes < 0 {
			t.Skip("memory is not counted here")
		}
		const mb = 100
		b.begin(holds(fmt.Sprint(mb)), "begun\n")
		u := b.eventually("100 MiB that are held", func(u runtime.Use) bool { return u.MemoryBytes >= before.MemoryBytes+mb<<20 })
		if u.MemoryPeak >= 0 && u.MemoryPeak < mb<<20 {
			t.Errorf("the peak is %d", u.MemoryPeak)
		}
	})
	t.Run("EachProcessIsCounted", func(t *testing.T) {
		b := meter(t)
		before := b.use()
		if before.Tasks < 0 {
			t.Skip("processes are not counted here")
		}
		b.begin(agent.Command{Shell: fmt.Sprintf("for n in $(seq %d); do sleep 600 & done; echo begun; wait", crowd)}, "begun\n")
		b.eventually("seven processes and their shell", func(u runtime.Use) bool { return u.Tasks >= before.Tasks+crowd+1 && u.Tasks <= before.Tasks+crowd+8 })
	})
	t.Run("WhatIsWrittenIsCounted", func(t *testing.T) {
		b := meter(t)
		before := b.use()
		if before.DiskBytes < 0 {
			t.Skip("what a disk holds is not counted here")
		}
		b.ok(fmt.Sprintf("head -c %d /dev/urandom > file; sync file", newFile))
		b.eventually("a new file", func(u runtime.Use) bool { return u.DiskBytes >= before.DiskBytes+newFile*15/16 }) // directories and their like may shrink
	})
	t.Run("OneThatIsPausedUsesNoProcessor", func(t *testing.T) {
		s.need(t, runtime.Pause)
		b := meter(t)
		b.begin(agent.Command{Shell: burn}, "begun\n")
		b.eventually("a busy loop", func(u runtime.Use) bool { return u.CPU > 50*time.Millisecond })
		b.pause()
		first := b.use()
		time.Sleep(300 * time.Millisecond) // what is measured
		if u := b.use(); u.CPU != first.CPU {
			t.Errorf("it used %v while it was paused", u.CPU-first.CPU)
		}
		b.resume()
		b.eventually("a busy loop that goes on", func(u runtime.Use) bool { return u.CPU > first.CPU })
	})
	t.Run("OneThatIsDownUsesNothing", func(t *testing.T) {
		b := meter(t)
		if err := b.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		_, err := b.Instance.(runtime.Meter).Use(t.Context())
		wantCode(t, "Use", err, fault.State)
	})
	t.Run("ItOutlivesTheServer", func(t *testing.T) {
		s.need(t, runtime.Reopen)
		b := s.createFor(t, s.spec())
		if _, ok := b.Instance.(runtime.Meter); !ok {
			b.removeLater()
			t.Skip("the driver's instances are no runtime.Meters")
		}
		b.begin(agent.Command{Shell: burn}, "begun\n")
		first := b.eventually("a busy loop", func(u runtime.Use) bool { return u.CPU > 100*time.Millisecond })
		b = s.reopen(t, b)
		b.eventually("the busy loop after the server's end", func(u runtime.Use) bool { return u.CPU >= first.CPU+100*time.Millisecond })
	})
}
