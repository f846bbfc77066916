// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// pauser is the instance as what Probe claims that it is.
func (b *box) pauser() runtime.Pauser {
	b.t.Helper()
	p, ok := b.Instance.(runtime.Pauser)
	if !ok {
		b.t.Fatal("Probe claims pause and the instance is no runtime.Pauser")
	}
	return p
}

func (b *box) pause() {
	b.t.Helper()
	if err := b.pauser().Pause(b.t.Context()); err != nil {
		b.t.Fatalf("Pause: %v", err)
	}
}

func (b *box) resume() {
	b.t.Helper()
	if err := b.pauser().Resume(b.t.Context()); err != nil {
		b.t.Fatalf("Resume: %v", err)
	}
}

// silent fails when the agent answers within a fifth of a second.
func (b *box) silent(when string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := b.agent.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		b.t.Errorf("%s: got %v, want no answer", when, err)
	}
}

// gaps is a program that says how long it was kept from running, once that was a
// while. A frozen one is kept for no shorter than it was frozen.
const gaps = `python3 -u -c '
import time
last = time.monotonic(); print("begun", flush=True)
while True:
    now = time.monotonic()
    if now - last > 0.4: print("stood still", flush=True); break
    last = now; time.sleep(0.005)'`

func pauses(t *testing.T, s *suite) {
	s.need(t, runtime.Pause)
	t.Run("EverythingStandsStillAndGoesOn", func(t *testing.T) {
		b := s.create(t, s.spec())
		starts := []agent.Command{{Shell: gaps}}
		if s.has(t, runtime.KillTree) { // else what leaves its session cannot be found
			starts = append(starts, agent.Command{Shell: "setsid -w setsid -w " + gaps})
		}
		if s.has(t, runtime.RootUser) {
			starts = append(starts, agent.Command{Shell: gaps, User: "root"})
		}
		var running []*agent.Process
		for _, c := range starts {
			running = append(running, b.begin(c, "begun\n"))
		}
		b.pause()
		if !b.pauser().Paused() {
			t.Error("it does not say that it is paused")
		}
		time.Sleep(600 * time.Millisecond) // what they measure
		b.resume()
		if b.pauser().Paused() {
			t.Error("it says that it is paused still")
		}
		for n, p := range running {
			o, err := collect(t.Context(), p)
			if err != nil || o.Stdout != "stood still\n" {
				t.Errorf("%s: got %q, %v", starts[n].User, o.Stdout, err)
			}
		}
	})
	t.Run("DialConnectsAndNobodyAnswers", func(t *testing.T) {
		b := s.create(t, s.spec())
		b.pause()
		conn, err := b.Dial(t.Context())
		if err != nil {
			t.Fatalf("Dial: %v", err)
		}
		_ = conn.Close()
		b.silent("while it is paused")
		b.resume()
		b.ok("true")
	})
	t.Run("WhatWasAskedMeanwhileIsAnsweredLater", func(t *testing.T) {
		b := s.create(t, s.spec())
		b.pause()
		asked := make(chan outcome, 1)
		var wg sync.WaitGroup
		wg.Go(func() {
			o, err := b.tryExec(t.Context(), agent.Command{Shell: "echo late"})
			if err != nil {
				t.Error(err)
			}
			asked <- o
		})
		b.silent("while it is paused")
		b.resume()
		wg.Wait()
		if o := <-asked; o.Stdout != "late\n" {
			t.Errorf("got %+v", o)
		}
	})
	t.Run("TwiceIsFine", func(t *testing.T) {
		b := s.create(t, s.spec())
		b.resume()
		b.pause()
		b.pause()
		b.silent("paused twice")
		b.resume()
		b.resume()
		b.ok("true")
	})
	t.Run("OneThatIsDownIsNot", func(t *testing.T) {
		b := s.create(t, s.spec())
		if err := b.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "Pause", b.pauser().Pause(t.Context()), fault.State)
		wantCode(t, "Resume", b.pauser().Resume(t.Context()), fault.State)
		if b.pauser().Paused() {
			t.Error("it says that it is paused")
		}
	})
	for _, grace := range []time.Duration{0, 2 * time.Second} {
		t.Run(fmt.Sprintf("StopWorksWithGrace%s", grace), func(t *testing.T) {
			spec := s.spec()
			b := s.create(t, spec)
			b.begin(agent.Command{Shell: "trap 'echo asked > asked; exit' TERM; echo begun; while :; do sleep 0.02; done"}, "begun\n")
			b.pause()
			if err := b.Stop(t.Context(), grace); err != nil {
				t.Fatal(err)
			}
			if e, err := b.Wait(t.Context()); err != nil || e.Cause != sandbox.CauseStopped {
				t.Errorf("Wait: got %+v, %v", e, err)
			}
			if b.pauser().Paused() {
				t.Error("it is down and says that it is paused")
			}
			if err := b.Start(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			want := "no"
			if grace > 0 {
				want = "asked"
			}
			if got := b.ok("cat asked 2>/dev/null || echo no"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	t.Run("RemoveWorks", func(t *testing.T) {
		b := s.create(t, s.spec())
		b.begin(agent.Command{Shell: "echo begun; sleep 60"}, "begun\n")
		b.pause()
		if err := b.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantGone(t, b.Handle().ID)
	})
	t.Run("TimeLimitsStandStill", func(t *testing.T) {
		b := s.create(t, s.spec())
		p := b.begin(agent.Command{Shell: "echo begun; sleep 1; echo ended", Timeout: 2 * time.Second}, "begun\n")
		b.pause()
		time.Sleep(2500 * time.Millisecond) // longer than the limit
		b.resume()
		if o, err := collect(t.Context(), p); err != nil || o.Stdout != "ended\n" || o.ExitCode != 0 {
			t.Errorf("got %+v, %v", o, err)
		}
		p = b.begin(agent.Command{Shell: "echo begun; sleep 60", Timeout: time.Second}, "begun\n")
		b.pause()
		b.resume()
		if o, err := collect(t.Context(), p); err != nil || o.Cause != sandbox.CauseTimeout {
			t.Errorf("a limit after a pause: got %+v, %v", o, err)
		}
	})
	t.Run("NothingIsLostWhenManyRunMeanwhile", func(t *testing.T) {
		b := s.create(t, s.spec())
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for n := range 15 {
					want := fmt.Sprintf("%d\n", n)
					if o, err := b.tryExec(t.Context(), agent.Command{Shell: fmt.Sprintf("echo %d; (exit 3)", n)}); err != nil || o.Stdout != want || o.ExitCode != 3 {
						t.Errorf("command %d: got %+v, %v", n, o, err)
					}
				}
			})
		}
		for range 30 {
			b.pause()
			b.resume()
		}
		wg.Wait()
	})
	t.Run("ItOutlivesTheServer", func(t *testing.T) {
		s.need(t, runtime.Reopen)
		b := s.createFor(t, s.spec())
		b.begin(agent.Command{Shell: gaps + "; echo went on > file; sleep 60"}, "begun\n")
		b.pause()
		b = s.reopen(t, b)
		if !b.pauser().Paused() {
			t.Error("the next server does not know that it is paused")
		}
		b.silent("after the server's end")
		time.Sleep(600 * time.Millisecond) // what the command measures
		b.resume()
		if got := b.ok("while ! [ -s file ]; do sleep 0.02; done; cat file"); got != "went on" {
			t.Errorf("got %q", got)
		}
	})
}

// begin starts a command and reads until it has written text.
func (b *box) begin(c agent.Command, text string) *agent.Process {
	b.t.Helper()
	c.ID = sandbox.NewProcessID()
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	p, err := b.agent.Start(b.t.Context(), c)
	if err != nil {
		b.t.Fatalf("start %q: %v", c.Shell, err)
	}
	b.t.Cleanup(func() { _ = p.Close() })
	for got := ""; got != text; {
		f, err := p.Next(b.t.Context())
		if err != nil {
			b.t.Fatalf("%q: %v after %q", c.Shell, err, got)
		}
		got += string(f.Data)
	}
	return p
}
