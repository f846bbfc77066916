// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/sandbox"
)

// noRounds keeps the janitor from its rounds: a bubble's days are short.
func noRounds(o *engine.Options) { o.JanitorRound = 1000 * time.Hour }

func ptr[T any](v T) *T { return &v }

func TestClocks(t *testing.T) {
	// state looks without asking the engine, since a call counts as a use.
	state := func(h *house, id sandbox.ID) sandbox.State {
		synctest.Wait()
		if s := h.get(id); s != nil {
			return s.State
		}
		return sandbox.Deleted
	}
	for name, test := range map[string]func(t *testing.T, h *house){
		"IdleIsStoppedAndSaysWhy": func(t *testing.T, h *house) {
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute)})
			time.Sleep(59 * time.Second)
			if got := state(h, s.ID); got != sandbox.Running {
				t.Fatalf("before its time: %s", got)
			}
			time.Sleep(2 * time.Second)
			if got := state(h, s.ID); got != sandbox.Stopped {
				t.Fatalf("after its time: %s", got)
			}
			if got := h.get(s.ID); got.StopCause != sandbox.CauseIdle {
				t.Errorf("cause: %s", got.StopCause)
			}
			evs := h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventStopped)
			if evs[2].Actor != "system" || evs[2].Cause != sandbox.CauseIdle {
				t.Errorf("event: %+v", evs[2])
			}
		},
		"AUseStartsWhatIdlenessStopped": func(t *testing.T, h *house) {
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute)})
			h.exec(string(s.ID), "echo kept > file")
			time.Sleep(2 * time.Minute)
			if got := state(h, s.ID); got != sandbox.Stopped {
				t.Fatalf("state: %s", got)
			}
			if res := h.exec(string(s.ID), "cat file"); string(res.Stdout) != "kept\n" {
				t.Errorf("stdout: %q", res.Stdout)
			}
			if got := state(h, s.ID); got != sandbox.Running {
				t.Errorf("state: %s", got)
			}
		},
		"ACallersStopOfItIsMeant": func(t *testing.T, h *house) {
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute)})
			time.Sleep(2 * time.Minute)
			if got, err := h.engine.Stop(t.Context(), alice, string(s.ID)); err != nil || got.StopCause != sandbox.CauseUser {
				t.Errorf("got %+v, %v", got, err)
			}
			if _, err := h.engine.Exec(t.Context(), alice, string(s.ID), engine.ExecRequest{Shell: "true"}, nil); err == nil {
				t.Error("it was started all the same")
			}
		},
		"ACallPutsItOff": func(t *testing.T, h *house) {
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute)})
			for range 5 {
				time.Sleep(50 * time.Second)
				if _, err := h.engine.Get(t.Context(), alice, string(s.ID)); err != nil {
					t.Fatal(err)
				}
			}
			if got := state(h, s.ID); got != sandbox.Running {
				t.Fatalf("state: %s", got)
			}
			time.Sleep(61 * time.Second)
			if got := state(h, s.ID); got != sandbox.Stopped {
				t.Fatalf("state: %s", got)
			}
		},
		"ATransferIsNeverIdle": func(t *testing.T, h *house) {
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute)})
			r, w := io.Pipe()
			done := make(chan error)
			go func() {
				_, _, err := h.files.WriteFile(t.Context(), alice, string(s.ID), "f", r, sandbox.WriteFileOptions{})
				done <- err
			}()
			time.Sleep(10 * time.Minute)
			if got := state(h, s.ID); got != sandbox.Running {
				t.Fatalf("state: %s", got)
			}
			_ = w.Close()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			time.Sleep(59 * time.Second)
			if got := state(h, s.ID); got != sandbox.Running {
				t.Fatalf("a moment after it: %s", got)
			}
			time.Sleep(2 * time.Second)
			if got := state(h, s.ID); got != sandbox.Stopped {
				t.Fatalf("a minute after it: %s", got)
			}
		},
		"ZeroIsNever": func(t *testing.T, h *house) {
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Duration(0)), Retention: ptr(time.Duration(0))})
			time.Sleep(3 * time.Hour)
			if got := state(h, s.ID); got != sandbox.Running {
				t.Fatalf("state: %s", got)
			}
			if _, err := h.engine.Stop(t.Context(), alice, string(s.ID)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * 24 * time.Hour)
			if got := state(h, s.ID); got != sandbox.Stopped {
				t.Fatalf("state: %s", got)
			}
		},
		"StoppedIsDeletedAfterItsRetention": func(t *testing.T, h *house) {
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute), Retention: ptr(time.Hour)})
			time.Sleep(time.Hour + 30*time.Second)
			if got := state(h, s.ID); got != sandbox.Stopped {
				t.Fatalf("state: %s", got)
			}
			time.Sleep(time.Minute)
			if got := state(h, s.ID); got != sandbox.Deleted {
				t.Fatalf("state: %s", got)
			}
			evs := h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventStopped, sandbox.EventDeleted)
			if evs[3].Cause != sandbox.CauseRetain {
				t.Errorf("event: %+v", evs[3])
			}
			h.nothing()
		},
		"TheServersRetentionIsOfAllWhoAskedForNone": func(t *testing.T, h *house) {
			asked := ptr(10 * 24 * time.Hour)
			plain, own, later := h.create(engine.CreateRequest{}), h.create(engine.CreateRequest{Retention: asked}), h.create(engine.CreateRequest{})
			if _, err := h.engine.Update(t.Context(), alice, string(later.ID), update.Patch{Retention: asked}); err != nil {
				t.Fatal(err)
			}
			up := h.create(engine.CreateRequest{})
			for _, s := range []*sandbox.Sandbox{plain, own, later} {
				if _, err := h.engine.Stop(t.Context(), alice, string(s.ID)); err != nil {
					t.Fatal(err)
				}
			}
			set := *h.engine.Settings()
			set.Retention = time.Hour
			if err := h.engine.Set(set); err != nil {
				t.Fatal(err)
			}
			page, err := h.engine.List(t.Context(), alice, storeAll)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range page.Items {
				if want := map[sandbox.ID]time.Duration{plain.ID: time.Hour, up.ID: time.Hour}[s.ID]; s.Retention != want && (want != 0 || s.Retention != *asked) {
					t.Errorf("%s is kept for %v", s.ID, s.Retention)
				}
			}
			if s, err := h.engine.Stop(t.Context(), alice, string(up.ID)); err != nil || s.Retention != time.Hour {
				t.Errorf("one that ran: %v, %v", s.Retention, err)
			}
			time.Sleep(59 * time.Minute)
			if got := state(h, plain.ID); got != sandbox.Stopped {
				t.Fatalf("state: %s", got)
			}
			time.Sleep(10 * time.Minute)
			for _, s := range []*sandbox.Sandbox{plain, up} {
				if got := state(h, s.ID); got != sandbox.Deleted {
					t.Errorf("who asked for none: %s", got)
				}
			}
			for _, s := range []*sandbox.Sandbox{own, later} {
				if got := state(h, s.ID); got != sandbox.Stopped {
					t.Errorf("who asked for ten days: %s", got)
				}
			}
		},
		"ExpiryComesWhateverItDoes": func(t *testing.T, h *house) {
			s := h.create(engine.CreateRequest{TTL: time.Hour})
			for range 7 {
				time.Sleep(10 * time.Minute)
				_, _ = h.engine.Get(t.Context(), alice, string(s.ID))
			}
			if got := state(h, s.ID); got != sandbox.Deleted {
				t.Fatalf("state: %s", got)
			}
			evs := h.events(s.ID)
			if last := evs[len(evs)-1]; last.Cause != sandbox.CauseTTL {
				t.Errorf("event: %+v", last)
			}
		},
		"AnUpdateCountsAtOnce": func(t *testing.T, h *house) {
			s := h.create(engine.CreateRequest{})
			if _, err := h.engine.Update(t.Context(), alice, string(s.ID), update.Patch{IdleTimeout: ptr(time.Second)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			if got := state(h, s.ID); got != sandbox.Stopped {
				t.Fatalf("state: %s", got)
			}
		},
		"DowntimeMakesNothingIdleAndExpiresWhatIsDue": func(t *testing.T, h *house) {
			idle := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Hour)})
			due := h.create(engine.CreateRequest{TTL: time.Hour})
			h.end()
			time.Sleep(2 * time.Hour)
			h.serve(noRounds)
			if got := state(h, idle.ID); got != sandbox.Running {
				t.Errorf("the idle one: %s", got)
			}
			if got := state(h, due.ID); got != sandbox.Deleted {
				t.Errorf("the one that is due: %s", got)
			}
			time.Sleep(time.Hour + time.Second)
			if got := state(h, idle.ID); got != sandbox.Stopped {
				t.Errorf("the idle one, an hour later: %s", got)
			}
		},
		"WhatTheDriverRefusesIsTriedAgain": func(t *testing.T, h *house) {
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute)})
			h.faulty.set(failing("stop"), nil)
			time.Sleep(2 * time.Minute)
			if got := state(h, s.ID); got != sandbox.Stopping {
				t.Fatalf("state: %s", got)
			}
			h.faulty.set(nil, nil)
			time.Sleep(time.Minute)
			if got := state(h, s.ID); got != sandbox.Stopped {
				t.Fatalf("state: %s", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) { test(t, open(t, dir, noRounds)) })
		})
	}
}

// TestARunningCommandIsNeverIdle is in real time, which stands still in a
// bubble while a process runs. A slow machine cannot make it fail.
func TestARunningCommandIsNeverIdle(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{IdleTimeout: ptr(sandbox.MinClock)})
	res, err := h.engine.Exec(t.Context(), alice, string(s.ID), engine.ExecRequest{Shell: "echo; sleep 2.5"}, nil)
	if err != nil || res.ExitCode != 0 {
		t.Errorf("in the foreground: %+v, %v", res, err)
	}
	res, err = h.engine.Exec(t.Context(), alice, string(s.ID), engine.ExecRequest{Shell: "echo; sleep 2.5; exit 7"}, stopAtFirst)
	if !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	h.await("the end of the command", func() bool {
		for _, ev := range h.events(s.ID) {
			if ev.ProcessID == res.ProcessID && ev.Done {
				if ev.ExitCode != 7 {
					t.Errorf("that nobody waits for: %+v", ev)
				}
				return true
			}
		}
		return false
	})
}

// stopAtFirst is a sink that has enough after the first frame.
func stopAtFirst(sandbox.Frame) error { return errEnough }
