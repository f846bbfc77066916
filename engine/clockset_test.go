// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// hostClock is a clock that can be set.
type hostClock struct{ off atomic.Int64 }

func (c *hostClock) set(by time.Duration) { c.off.Add(int64(by)) }
func (c *hostClock) now() time.Time       { return time.Now().Add(time.Duration(c.off.Load())) }

// inBubble runs a test whose days are short, with a clock that can be set.
func inBubble(t *testing.T, test func(t *testing.T, h *house, c *hostClock)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var c hostClock
		test(t, open(t, dir, noRounds, func(o *engine.Options) { o.Now = c.now }), &c)
	})
}

// now returns a sandbox's state without asking the engine, which would be a use.
func (h *house) now(id sandbox.ID) sandbox.State {
	h.t.Helper()
	synctest.Wait()
	if s := h.get(id); s != nil {
		return s.State
	}
	return sandbox.Deleted
}

func (h *house) wantState(id sandbox.ID, want sandbox.State, when string) {
	h.t.Helper()
	if got := h.now(id); got != want {
		h.t.Fatalf("%s: got %s, want %s", when, got, want)
	}
}

func TestIdlenessCanPause(t *testing.T) {
	t.Run("AndTheNextCallGoesOn", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house, _ *hostClock) {
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute), OnIdle: ptr(sandbox.IdlePause)})
			time.Sleep(61 * time.Second)
			h.wantState(s.ID, sandbox.Paused, "after its time")
			got := h.get(s.ID)
			if got.StopCause != sandbox.CauseIdle || !strings.Contains(got.StopDetail, "idle for 60 s (idle_timeout); last activity: its start at ") {
				t.Errorf("got %s, %q", got.StopCause, got.StopDetail)
			}
			h.exec(string(s.ID), "true")
			h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventPaused, sandbox.EventResumed, sandbox.EventExec)
			time.Sleep(61 * time.Second)
			h.wantState(s.ID, sandbox.Paused, "idle again")
			if got := h.get(s.ID).StopDetail; !strings.Contains(got, "last activity: exec at ") {
				t.Errorf("detail: %q", got)
			}
		})
	})
	t.Run("ButNotWithoutAutoStart", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house, _ *hostClock) {
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute), OnIdle: ptr(sandbox.IdlePause), AutoStart: ptr(false)})
			time.Sleep(61 * time.Second)
			h.wantState(s.ID, sandbox.Paused, "after its time")
			_, err := h.engine.Exec(t.Context(), alice, string(s.ID), engine.ExecRequest{Shell: "true"}, nil)
			wantCode(t, err, fault.State)
			h.resume(string(s.ID))
			h.exec(string(s.ID), "true")
		})
	})
	t.Run("AndACallersPauseOfItIsMeant", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house, _ *hostClock) {
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute), OnIdle: ptr(sandbox.IdlePause)})
			time.Sleep(61 * time.Second)
			if got := h.pause(string(s.ID)); got.StopCause != sandbox.CauseUser {
				t.Errorf("got %+v", got)
			}
			_, err := h.engine.Exec(t.Context(), alice, string(s.ID), engine.ExecRequest{Shell: "true"}, nil)
			wantCode(t, err, fault.State)
		})
	})
	t.Run("AndStopsWhatCannotBePaused", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house, _ *hostClock) {
			h.faulty.bare = true
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute), OnIdle: ptr(sandbox.IdlePause)})
			time.Sleep(61 * time.Second)
			h.wantState(s.ID, sandbox.Stopped, "after its time")
			if got := h.get(s.ID).StopDetail; !strings.Contains(got, "it cannot be paused") {
				t.Errorf("detail: %q", got)
			}
		})
	})
	t.Run("WhichRetentionEndsToo", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house, _ *hostClock) {
			s := h.create(engine.CreateRequest{Retention: ptr(time.Hour)})
			h.pause(string(s.ID))
			time.Sleep(time.Hour - time.Second)
			h.wantState(s.ID, sandbox.Paused, "before its time")
			time.Sleep(2 * time.Second)
			h.wantState(s.ID, sandbox.Deleted, "after its time")
			evs := h.events(s.ID)
			if last := evs[len(evs)-1]; last.Cause != sandbox.CauseRetain || !strings.Contains(last.Detail, "it was paused for 3600 s (retention), since ") {
				t.Errorf("event: %+v", last)
			}
		})
	})
}

func TestSlidingTTL(t *testing.T) {
	t.Run("IsPutOffByUseAndDeletesRunningOrNot", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house, _ *hostClock) {
			up := h.create(engine.CreateRequest{SlidingTTL: time.Hour, IdleTimeout: ptr(time.Duration(0))})
			down := h.create(engine.CreateRequest{SlidingTTL: time.Hour, IdleTimeout: ptr(time.Minute)})
			for range 4 {
				time.Sleep(50 * time.Minute)
				for _, id := range []sandbox.ID{up.ID, down.ID} {
					if _, err := h.engine.Get(t.Context(), alice, string(id)); err != nil {
						t.Fatal(err) // a call by its name counts, also for one that is down
					}
				}
			}
			h.wantState(down.ID, sandbox.Stopped, "in use")
			time.Sleep(59 * time.Minute)
			h.wantState(up.ID, sandbox.Running, "before its time")
			h.wantState(down.ID, sandbox.Stopped, "before its time")
			time.Sleep(2 * time.Minute)
			h.wantState(up.ID, sandbox.Deleted, "after its time")
			h.wantState(down.ID, sandbox.Deleted, "after its time")
			evs := h.events(up.ID)
			if last := evs[len(evs)-1]; last.Cause != sandbox.CauseTTL || !strings.Contains(last.Detail, "it was not used for 3600 s (ttl); last activity: a call by its name at ") {
				t.Errorf("event: %+v", last)
			}
		})
	})
	t.Run("TakesDowntimeForUse", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house, c *hostClock) {
			up := h.create(engine.CreateRequest{SlidingTTL: time.Hour, IdleTimeout: ptr(time.Duration(0))})
			down := h.create(engine.CreateRequest{SlidingTTL: time.Hour})
			if _, err := h.engine.Stop(t.Context(), alice, string(down.ID)); err != nil {
				t.Fatal(err)
			}
			h.end()
			time.Sleep(10 * time.Hour)
			h.serve(noRounds, func(o *engine.Options) { o.Now = c.now })
			time.Sleep(59 * time.Minute)
			h.wantState(up.ID, sandbox.Running, "with its full time")
			h.wantState(down.ID, sandbox.Stopped, "with its full time")
			time.Sleep(2 * time.Minute)
			h.wantState(up.ID, sandbox.Deleted, "after its time")
			h.wantState(down.ID, sandbox.Deleted, "after its time")
			evs := h.events(down.ID)
			if last := evs[len(evs)-1]; !strings.Contains(last.Detail, "when the server began, went on after it had stood still, or its clock was set") {
				t.Errorf("event: %+v", last)
			}
		})
	})
}

func TestAutoDelete(t *testing.T) {
	for name, stop := range map[string]func(t *testing.T, h *house, s *sandbox.Sandbox){
		"ACaller": func(t *testing.T, h *house, s *sandbox.Sandbox) {
			got, err := h.engine.Stop(t.Context(), alice, string(s.ID))
			if err != nil || got.State != sandbox.Deleted || got.ID != s.ID {
				t.Errorf("got %+v, %v", got, err)
			}
		},
		"Idleness": func(t *testing.T, h *house, s *sandbox.Sandbox) { time.Sleep(61 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house, _ *hostClock) {
				s := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute), AutoDelete: ptr(true)})
				stop(t, h, s)
				h.wantState(s.ID, sandbox.Deleted, "after its stop")
				evs := h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventStopped, sandbox.EventDeleted)
				if !strings.Contains(evs[3].Detail, "auto_delete") || evs[3].Cause != evs[2].Cause || !strings.Contains(evs[3].Detail, evs[2].Detail) {
					t.Errorf("event: %+v", evs[3])
				}
				h.nothing()
			})
		})
	}
	t.Run("IsRefusedForWhatIsStoppedAlready", func(t *testing.T) {
		h := open(t, t.TempDir())
		h.create(engine.CreateRequest{Key: "box"})
		if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		_, err := h.engine.Update(t.Context(), alice, "box", update.Patch{AutoDelete: ptr(true)})
		wantCode(t, err, fault.State)
	})
}

// Whatever the host's clock does, idleness is real time, nothing is deleted before
// its time, and no clock stands still for ever.
func TestTheHostsClockIsSet(t *testing.T) {
	t.Run("BackAndIdlenessStillStrikes", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house, c *hostClock) {
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(30 * time.Minute), SlidingTTL: 3 * time.Hour})
			time.Sleep(time.Minute)
			c.set(-24 * time.Hour)
			time.Sleep(25 * time.Minute)
			h.wantState(s.ID, sandbox.Running, "before its time")
			time.Sleep(8 * time.Minute)
			h.wantState(s.ID, sandbox.Stopped, "after its time")
			time.Sleep(2 * time.Hour)
			h.wantState(s.ID, sandbox.Stopped, "before its TTL")
			time.Sleep(time.Hour)
			h.wantState(s.ID, sandbox.Deleted, "after its TTL")
		})
	})
	t.Run("BackAndAUseAfterItCounts", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house, c *hostClock) {
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(30 * time.Minute)})
			c.set(-time.Hour)
			time.Sleep(20 * time.Minute)
			h.exec(string(s.ID), "true")
			time.Sleep(25 * time.Minute)
			h.wantState(s.ID, sandbox.Running, "25 minutes after its last command")
			time.Sleep(6 * time.Minute)
			h.wantState(s.ID, sandbox.Stopped, "31 minutes after it")
		})
	})
	t.Run("BackAndRetentionWaits", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house, c *hostClock) {
			s := h.create(engine.CreateRequest{Retention: ptr(2 * time.Hour)})
			if _, err := h.engine.Stop(t.Context(), alice, string(s.ID)); err != nil {
				t.Fatal(err)
			}
			c.set(-time.Hour)
			time.Sleep(2*time.Hour - time.Minute)
			h.wantState(s.ID, sandbox.Stopped, "before its time")
			time.Sleep(time.Hour + 7*time.Minute)
			h.wantState(s.ID, sandbox.Deleted, "after it")
		})
	})
	t.Run("ForwardAndNothingIsIdleByThat", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house, c *hostClock) {
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(30 * time.Minute), SlidingTTL: time.Hour})
			time.Sleep(20 * time.Minute)
			c.set(24 * time.Hour)
			time.Sleep(29 * time.Minute)
			h.wantState(s.ID, sandbox.Running, "before its time")
			time.Sleep(3 * time.Minute)
			h.wantState(s.ID, sandbox.Stopped, "after its time")
		})
	})
	t.Run("ForwardWhileTheServerIsDown", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house, c *hostClock) {
			s := h.create(engine.CreateRequest{IdleTimeout: ptr(30 * time.Minute)})
			h.end()
			c.set(-5 * time.Hour)
			h.serve(noRounds, func(o *engine.Options) { o.Now = c.now })
			time.Sleep(29 * time.Minute)
			h.wantState(s.ID, sandbox.Running, "before its time")
			time.Sleep(2 * time.Minute)
			h.wantState(s.ID, sandbox.Stopped, "after its time")
		})
	})
}

func TestClocksChangeOnALiveSandbox(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house, c *hostClock) {
		s := h.create(engine.CreateRequest{TTL: time.Hour, IdleTimeout: ptr(time.Duration(0))})
		time.Sleep(50 * time.Minute)
		if _, err := h.engine.Update(t.Context(), alice, string(s.ID), update.Patch{TTL: ptr(2 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		h.end() // an extension is durable
		h.serve(noRounds, func(o *engine.Options) { o.Now = c.now })
		time.Sleep(119 * time.Minute)
		h.wantState(s.ID, sandbox.Running, "within what it was extended by")
		for _, p := range []update.Patch{
			{TTL: ptr(time.Duration(0)), SlidingTTL: ptr(time.Hour)},
			{OnIdle: ptr(sandbox.IdlePause), IdleTimeout: ptr(time.Minute)},
		} {
			if _, err := h.engine.Update(t.Context(), alice, string(s.ID), p); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(61 * time.Second)
		h.wantState(s.ID, sandbox.Paused, "with a minute of idleness")
		time.Sleep(time.Hour)
		h.wantState(s.ID, sandbox.Deleted, "an hour later")
	})
}

// While the server stood still nobody could use a sandbox: idleness counts from then on.
func TestAServerThatStoodStillMakesNothingIdle(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house, _ *hostClock) {
		s := h.create(engine.CreateRequest{IdleTimeout: ptr(10 * time.Second)})
		time.Sleep(9 * time.Second)
		h.engine.StoodStill(8 * time.Second)
		time.Sleep(9 * time.Second)
		h.wantState(s.ID, sandbox.Running, "after it went on")
		time.Sleep(2 * time.Second)
		h.wantState(s.ID, sandbox.Stopped, "idle from then on")
		if got := h.get(s.ID).StopDetail; !strings.Contains(got, "went on after it had stood still") {
			t.Errorf("detail: %q", got)
		}
	})
}
