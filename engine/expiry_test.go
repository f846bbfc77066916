// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func expiring(action sandbox.ExpiryAction, more ...func(*engine.CreateRequest)) engine.CreateRequest {
	r := engine.CreateRequest{TTL: time.Minute, OnExpiry: &action, IdleTimeout: ptr(time.Duration(0))}
	for _, m := range more {
		m(&r)
	}
	return r
}

func TestOnExpiry(t *testing.T) {
	stop := func(h *house, id sandbox.ID) {
		if _, err := h.engine.Stop(h.t.Context(), alice, string(id)); err != nil {
			h.t.Fatal(err)
		}
	}
	pause := func(h *house, id sandbox.ID) {
		if _, err := h.engine.Pause(h.t.Context(), alice, string(id)); err != nil {
			h.t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		action sandbox.ExpiryAction
		before func(*house, sandbox.ID)
		state  sandbox.State
		cause  sandbox.Cause
		last   sandbox.EventType
	}{
		"Delete":             {sandbox.ExpiryDelete, nil, sandbox.Deleted, "", sandbox.EventDeleted},
		"DeletePaused":       {sandbox.ExpiryDelete, pause, sandbox.Deleted, "", sandbox.EventDeleted},
		"Stop":               {sandbox.ExpiryStop, nil, sandbox.Stopped, sandbox.CauseTTL, sandbox.EventStopped},
		"StopPaused":         {sandbox.ExpiryStop, pause, sandbox.Stopped, sandbox.CauseTTL, sandbox.EventStopped},
		"StopStopped":        {sandbox.ExpiryStop, stop, sandbox.Stopped, sandbox.CauseUser, sandbox.EventUpdated},
		"Pause":              {sandbox.ExpiryPause, nil, sandbox.Paused, sandbox.CauseTTL, sandbox.EventPaused},
		"PausePaused":        {sandbox.ExpiryPause, pause, sandbox.Paused, sandbox.CauseUser, sandbox.EventUpdated},
		"PauseWhatIsStopped": {sandbox.ExpiryPause, stop, sandbox.Stopped, sandbox.CauseUser, sandbox.EventUpdated},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house, _ *hostClock) {
				s := h.create(expiring(c.action))
				if c.before != nil {
					c.before(h, s.ID)
				}
				before := h.now(s.ID)
				time.Sleep(59 * time.Second)
				h.wantState(s.ID, before, "before its time")
				time.Sleep(2*time.Second + 10*time.Minute) // and a sweep, of one that is down
				h.wantState(s.ID, c.state, "after it")
				evs := h.events(s.ID)
				if last := evs[len(evs)-1]; last.Type != c.last || last.Actor != "system" || !strings.Contains(last.Detail, "(expires_at)") {
					t.Errorf("the last event: %+v", last)
				}
				if c.state == sandbox.Deleted {
					return
				}
				got := h.get(s.ID)
				if !got.ExpiresAt.IsZero() || got.StopCause != c.cause || got.OnExpiry != c.action {
					t.Errorf("got %+v", got)
				}
				// The date is spent: it does not strike again, and what is started has none.
				n := len(evs)
				if _, err := h.engine.Start(t.Context(), alice, string(s.ID)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				h.wantState(s.ID, sandbox.Running, "an hour after its start")
				if got := len(h.events(s.ID)); got != n+1 {
					t.Errorf("%d events more", got-n)
				}
				// A new date counts anew.
				if _, err := h.engine.Update(t.Context(), alice, string(s.ID), update.Patch{TTL: ptr(time.Minute), OnExpiry: ptr(sandbox.ExpiryDelete)}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(61 * time.Second)
				h.wantState(s.ID, sandbox.Deleted, "after the new date")
			})
		})
	}
}

// A use does not keep a sandbox from its date, a call does not bring it back, and a deletion that waits for a stop comes.
func TestWhatExpiryLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house, _ *hostClock) {
		s := h.create(expiring(sandbox.ExpiryStop))
		gone := h.create(expiring(sandbox.ExpiryStop, func(r *engine.CreateRequest) { r.AutoDelete = ptr(true) }))
		resumed := h.create(expiring(sandbox.ExpiryPause, func(r *engine.CreateRequest) { r.AutoResume = ptr(true) }))
		kept := h.create(expiring(sandbox.ExpiryPause, func(r *engine.CreateRequest) { r.Retention = ptr(time.Hour) }))
		time.Sleep(61 * time.Second)
		h.wantState(s.ID, sandbox.Stopped, "after its time")
		h.wantState(gone.ID, sandbox.Deleted, "with auto_delete")
		h.wantState(resumed.ID, sandbox.Paused, "with auto_resume")
		if _, err := h.engine.Exec(t.Context(), alice, string(s.ID), engine.ExecRequest{Shell: "true"}, nil); !fault.Is(err, fault.State) {
			t.Errorf("a command in what expired: %v", err)
		}
		h.exec(string(resumed.ID), "true")
		time.Sleep(time.Hour)
		h.wantState(kept.ID, sandbox.Deleted, "an hour after its pause")
	})
}

// A server that is down when the date comes acts on it when it is back.
func TestExpiryWhileTheServerIsDown(t *testing.T) {
	for action, state := range map[sandbox.ExpiryAction]sandbox.State{sandbox.ExpiryStop: sandbox.Stopped, sandbox.ExpiryDelete: sandbox.Deleted} {
		t.Run(string(action), func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house, _ *hostClock) {
				s := h.create(expiring(action))
				h.end()
				time.Sleep(time.Hour)
				h.serve(noRounds)
				synctest.Wait()
				time.Sleep(10 * time.Minute)
				h.wantState(s.ID, state, "after a while")
				if got := h.get(s.ID); got != nil && (!got.ExpiresAt.IsZero() || got.StopCause != sandbox.CauseTTL) {
					t.Errorf("got %+v", got)
				}
			})
		})
	}
}

func TestAnExpiryThatIsWrong(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{})
	at := time.Now()
	for field, p := range map[string]update.Patch{
		"on_expiry":  {OnExpiry: ptr(sandbox.ExpiryAction("nap"))},
		"expires_at": {ExpiresAt: ptr(at.Add(-time.Second))},
		"extend_to":  {ExtendTo: ptr(at.Add(-time.Hour))},
	} {
		_, err := h.engine.Update(t.Context(), alice, string(s.ID), p)
		if f := fault.As(err); f == nil || f.Code != fault.Invalid || len(f.Fields) != 1 || f.Fields[0].Name != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{OnExpiry: ptr(sandbox.ExpiryAction("nap"))}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a create: %v", err)
	}
	if got := h.get(s.ID); got.Revision != s.Revision {
		t.Errorf("something changed: %+v", got)
	}
}

func TestAStopWithAGrace(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{})
	for _, bad := range []time.Duration{-1, engine.MaxGrace + 1} {
		_, err := h.engine.StopWithin(t.Context(), alice, string(s.ID), bad)
		if f := fault.As(err); f == nil || f.Code != fault.Invalid || f.Fields[0].Name != "grace_seconds" {
			t.Errorf("%v: %v", bad, err)
		}
	}
	// The process writes a file when it is asked to end, which takes it a moment.
	begin := func() {
		h.exec(string(s.ID), "rm -f ready ended")
		if _, err := h.engine.Start(t.Context(), alice, string(s.ID)); err != nil {
			t.Fatal(err)
		}
		_, err := h.engine.StartProcess(t.Context(), alice, string(s.ID), engine.StartRequest{
			Shell: "trap 'sleep 0.3; touch ended; exit' TERM; touch ready; while :; do sleep 0.01; done"})
		if err != nil {
			t.Fatal(err)
		}
		h.exec(string(s.ID), "until test -e ready; do sleep 0.01; done")
	}
	for grace, ended := range map[time.Duration]bool{0: false, engine.MaxGrace: true} {
		begin()
		got, err := h.engine.StopWithin(t.Context(), alice, string(s.ID), grace)
		if err != nil || got.State != sandbox.Stopped {
			t.Fatalf("%v: %+v, %v", grace, got, err)
		}
		if _, err := h.engine.Start(t.Context(), alice, string(s.ID)); err != nil {
			t.Fatal(err)
		}
		if res := h.exec(string(s.ID), "test -e ended && echo yes || echo no"); strings.TrimSpace(string(res.Stdout)) != map[bool]string{true: "yes", false: "no"}[ended] {
			t.Errorf("with a grace of %v its end: %q", grace, res.Stdout)
		}
	}
}
