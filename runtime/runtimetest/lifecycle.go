// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

func probe(t *testing.T, s *suite) {
	caps, err := s.driver.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range runtime.Features() {
		reason, known := caps[f]
		switch {
		case !known:
			t.Errorf("Probe says nothing of %s", f)
		case reason != nil && fault.Of(reason) != fault.Unsupported:
			t.Errorf("the reason for no %s has code %q, want unsupported: %v", f, fault.Of(reason), reason)
		case reason != nil && slices.Contains(s.Must, f):
			t.Errorf("the driver must have %s here, and says: %v", f, reason)
		case reason == nil && slices.Contains(s.Lacks, f):
			t.Errorf("the driver has %s, which its harness says that it lacks", f)
		}
		t.Logf("%-14s %v", f, reason)
	}
}

func lifecycle(t *testing.T, s *suite) {
	t.Run("AFreshInstanceAnswersAtOnce", func(t *testing.T) {
		b := s.create(t, s.spec())
		if got := b.ok("echo hello; basename $PWD"); got != "hello\nworkspace" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("AnIdIsTakenOnce", func(t *testing.T) {
		spec := s.spec()
		b := s.create(t, spec)
		_, err := s.driver.Create(t.Context(), spec)
		wantCode(t, "Create of an id that is up", err, fault.Exists)
		if err := b.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		_, err = s.driver.Create(t.Context(), spec)
		wantCode(t, "Create of an id that is down", err, fault.Exists)
	})
	t.Run("ACanceledCreateLeavesNothing", func(t *testing.T) {
		// The context ends at another instant each time, also in the middle.
		for n := range 20 {
			spec := s.spec()
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*250*time.Microsecond)
			i, err := s.driver.Create(ctx, spec)
			cancel()
			if err == nil {
				if err := i.Remove(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			s.wantGone(t, spec.ID)
		}
	})
	t.Run("StopKeepsTheDiskAndStartBringsItBack", func(t *testing.T) {
		spec := s.spec()
		b := s.create(t, spec)
		b.ok("echo kept > file; mkdir -p d; (for i in $(seq 400); do date +%N > alive; sleep 0.02; done) >/dev/null 2>&1 &")
		same := s.changeRoot(b)
		if err := b.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		_, err := b.Dial(t.Context())
		wantCode(t, "Dial of an instance that is down", err, fault.State)
		for range 3 {
			if err := b.Start(t.Context(), spec); err != nil {
				t.Fatalf("Start: %v", err)
			}
			if got := b.ok("cat file; ls -d d"); got != "kept\nd" {
				t.Errorf("after the start: got %q", got)
			}
			same()
			if s.has(t, runtime.KillTree) { // else what a command left behind may have escaped
				if got := b.ok("a=$(cat alive); sleep 0.2; [ \"$a\" = \"$(cat alive)\" ] && echo no process left"); got != "no process left" {
					t.Errorf("after the start: got %q", got)
				}
			}
			b.ok("echo more >> other")
			if err := b.Stop(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("StartOfOneThatIsUpIsAnError", func(t *testing.T) {
		spec := s.spec()
		b := s.create(t, spec)
		wantCode(t, "Start", b.Start(t.Context(), spec), fault.State)
		b.ok("true")
	})
	t.Run("StoppingTwiceIsNotAnError", func(t *testing.T) {
		b := s.create(t, s.spec())
		for range 2 {
			if err := b.Stop(t.Context(), 0); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("RemovingTwiceIsNotAnError", func(t *testing.T) {
		b := s.create(t, s.spec())
		for range 2 {
			if err := b.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		}
		s.wantGone(t, b.Handle().ID)
	})
	t.Run("AGracefulStopLetsProcessesEndByThemselves", func(t *testing.T) {
		s.need(t, runtime.KillTree) // who cannot kill what a command left cannot ask it either
		spec := s.spec()
		b := s.create(t, spec)
		b.ok("(trap 'echo asked > asked; exit' TERM; while :; do sleep 0.05; done) >/dev/null 2>&1 & sleep 0.2")
		if err := b.Stop(t.Context(), 5*time.Second); err != nil {
			t.Fatal(err)
		}
		if err := b.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if got := b.ok("cat asked"); got != "asked" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("WaitTellsThatAStopWasAskedFor", func(t *testing.T) {
		b := s.create(t, s.spec())
		exits := make(chan runtime.Exit)
		go func() {
			e, _ := b.Wait(t.Context())
			exits <- e
		}()
		if err := b.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if e := <-exits; e.Cause != sandbox.CauseStopped {
			t.Errorf("got %+v, want the cause stopped", e)
		}
		if e, err := b.Wait(t.Context()); err != nil || e.Cause != sandbox.CauseStopped {
			t.Errorf("a later Wait: got %+v, %v", e, err)
		}
	})
	t.Run("AStartAfterALongLivedChangeSeesIt", func(t *testing.T) {
		spec := s.spec()
		b := s.create(t, spec)
		b.ok("head -c 8388608 /dev/urandom > blob; sha256sum blob > sum")
		if err := b.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if err := b.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		b.ok("sha256sum -c sum")
	})
}

// wantGone fails when the driver still knows the id.
func (s *suite) wantGone(t *testing.T, id sandbox.ID) {
	t.Helper()
	list, err := s.driver.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range list {
		if h.ID == id {
			t.Errorf("%s is still listed", id)
		}
	}
	_, err = s.driver.Open(t.Context(), runtime.Handle{ID: id})
	wantCode(t, "Open of an instance that is gone", err, fault.NotFound)
}

func restart(t *testing.T, s *suite) {
	s.need(t, runtime.Reopen)
	spec := s.spec()
	i, err := s.driver.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	down, err := s.driver.Create(t.Context(), s.spec())
	if err != nil {
		t.Fatal(err)
	}
	if err := down.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	b := &box{t: t, Instance: i, agent: newAgent(i)}
	b.ok("echo before > f; (for i in $(seq 2000); do date +%s%N > alive; sleep 0.05; done) >/dev/null 2>&1 &")
	handle := i.Handle()

	if err := s.driver.Close(); err != nil {
		t.Fatal(err)
	}
	s.driver = s.Open(t)

	list, err := s.driver.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 {
		t.Errorf("List after the restart: got %d instances, want 2", len(list))
	}
	again, err := s.driver.Open(t.Context(), handle)
	if err != nil {
		t.Fatalf("Open after the restart: %v", err)
	}
	t.Cleanup(func() { _ = again.Remove(context.Background()) })
	b = &box{t: t, Instance: again, agent: newAgent(again)}
	if got := b.ok("cat f"); got != "before" {
		t.Errorf("got %q", got)
	}
	if got := b.ok("a=$(cat alive 2>/dev/null); for i in $(seq 600); do b=$(cat alive); [ \"$a\" != \"$b\" ] && echo goes on && break; sleep 0.05; done 2>/dev/null"); got != "goes on" {
		t.Errorf("the background process: got %q", got)
	}
	// The range, the cgroups and the rest are the driver's again.
	if err := again.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if e, _ := again.Wait(t.Context()); e.Cause != sandbox.CauseStopped {
		t.Errorf("Wait: got %+v", e)
	}
	if err := again.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	b.ok("true")

	stopped, err := s.driver.Open(t.Context(), down.Handle())
	if err != nil {
		t.Fatal(err)
	}
	if e, err := stopped.Wait(t.Context()); err != nil {
		t.Errorf("Wait of one that is down: %+v, %v", e, err)
	}
	if err := stopped.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if err := again.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	s.wantGone(t, spec.ID)
}
