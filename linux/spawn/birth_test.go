// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// begun begins the birth of a process 1 that is to execute path, in a range of its own.
func begun(t *testing.T, s *Starter, m Method, base uint32, path string, script *Script) *Birth {
	t.Helper()
	ns, err := NewUserNS(base, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	program, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	b, err := s.Begin(t.Context(), Process{Program: program, Args: []string{"x"}, UserNS: ns, NetNS: netOf(t, ns, m), Script: script})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func noChild(t *testing.T) {
	t.Helper()
	if _, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil); err != unix.ECHILD {
		t.Errorf("a child is left: wait4 says %v", err)
	}
}

// asleep is a script that lasts as long as nobody ends it.
func asleep() *Script {
	t := new(Script)
	t.Do("sleep", Never, unix.SYS_PPOLL)
	return t
}

// pidOf waits until a birth's process 1 is there, which its script holds up.
func pidOf(t *testing.T, b *Birth) int {
	t.Helper()
	for limit := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if pid := atomic.LoadInt32(&b.slot.plan.report.pid); pid != 0 {
			return int(pid)
		}
		if time.Now().After(limit) {
			t.Fatal("there is no process 1")
		}
	}
}

func TestOneThatIsBornIsTheOneThatArrives(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		b := begun(t, starter(t, m), m, 700_400_000, "/bin/true", nil)
		pid, err := b.Born()
		if err != nil {
			t.Fatal(err)
		}
		arrived, err := b.Wait()
		if err != nil || arrived != pid {
			t.Errorf("born as %d, and arrived as %d, %v", pid, arrived, err)
		}
		if ws, err := wait(pid); err != nil || ws.ExitStatus() != 0 {
			t.Errorf("it ended with %v, %v", ws, err)
		}
		noChild(t)
	})
}

func TestOneThatIsBornAndHasNoProgramIsToldOfByWait(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		s := starter(t, m)
		b := begun(t, s, m, 700_500_000, "/etc/passwd", nil)
		before := openFDs(t)
		_, _ = b.Born() // it may have ended already
		if _, err := b.Wait(); !errors.Is(err, unix.EACCES) {
			t.Errorf("got %v, want EACCES", err)
		}
		noChild(t)
		if n := openFDs(t); n != before {
			t.Errorf("%d descriptors are open, %d were", n, before)
		}
		if pid, err := begun(t, s, m, 700_600_000, "/bin/true", nil).Wait(); err != nil { // its slot is free
			t.Error(err)
		} else if _, err := wait(pid); err != nil {
			t.Error(err)
		}
	})
}

// Whoever kills process 1 on its way finds a birth that ends, and leaves what can be reaped.
func TestOneThatIsKilledOnItsWayEndsItsBirth(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		b := begun(t, starter(t, m), m, 700_700_000, "/bin/true", asleep())
		pid := pidOf(t, b)
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Born(); err == nil {
			t.Error("it is born, and was killed before")
		}
		if got, err := b.Wait(); err != nil || got != pid {
			t.Errorf("got %d, %v; want %d, to be reaped", got, err, pid)
		}
		if ws, err := wait(pid); err != nil || ws.Signal() != unix.SIGKILL {
			t.Errorf("it ended with %v, %v", ws, err)
		}
		noChild(t)
	})
}

func TestABirthThatWaitsForOthersHearsItsCaller(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		s := starter(t, m) // for one at a time
		first := begun(t, s, m, 700_800_000, "/bin/true", asleep())
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := s.Begin(ctx, Process{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		pid := pidOf(t, first)
		_ = unix.Kill(pid, unix.SIGKILL)
		if _, err := first.Wait(); err != nil {
			t.Error(err)
		}
		_, _ = wait(pid)
		noChild(t)
	})
}

// The child goes on after the call that made it has returned: what it reads is kept until
// it has ended, however the heap is swept meanwhile.
func TestAScriptIsKeptUntilItWasPlayed(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		ctx, cancel := context.WithCancel(t.Context())
		swept := make(chan struct{})
		go func() {
			defer close(swept)
			var junk [][]byte
			for ctx.Err() == nil {
				runtime.GC()
				for range 2000 { // of the size of the text
					junk = append(junk, []byte("/nowhere/x"))
				}
				junk = junk[:0]
			}
		}()
		defer func() { cancel(); <-swept }()
		ns, err := NewUserNS(700_900_000, m)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ns.Close() }()
		for range 20 {
			script := Script{Method: m}
			nap := shared[unix.Timespec](t)
			nap.Nsec = int64(20 * time.Millisecond)
			script.Do("sleep", Never, unix.SYS_NANOSLEEP, Pointer(unsafe.Pointer(nap)), Int(0))
			script.Do("look", Never, unix.SYS_FACCESSAT, At(), script.Text("/dev/zero"), Int(0))
			if _, err := script.RunAs(ns, nil); err != nil {
				t.Fatal(err)
			}
		}
	})
}
