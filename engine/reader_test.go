// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Reading a file is enough to bring up what went down by itself, on record, and never what a
// caller took down.
func TestAReaderBringsUpOnlyWhatNoCallerTookDown(t *testing.T) {
	reader := access.Caller{Project: "default", Actor: "reader", Via: "rest", Scopes: []access.Scope{access.SandboxesRead}}
	inBubble(t, func(t *testing.T, h *house, _ *hostClock) {
		idle := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute)})
		manual := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute), AutoStart: ptr(false)})
		paused := h.create(engine.CreateRequest{IdleTimeout: ptr(time.Duration(0))})
		stopped := h.create(engine.CreateRequest{})
		h.pause(string(paused.ID))
		if _, err := h.engine.Stop(t.Context(), alice, string(stopped.ID)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(61 * time.Second)
		for _, s := range []*sandbox.Sandbox{idle, manual} {
			h.wantState(s.ID, sandbox.Stopped, "after its time")
		}
		if _, err := h.files.StatFile(t.Context(), reader, string(idle.ID), "/workspace", ""); err != nil {
			t.Errorf("a file of one that was idle: %v", err)
		}
		evs := h.wantEvents(idle.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventStopped, sandbox.EventStarted)
		if last := evs[len(evs)-1]; last.Actor != "reader" || last.Via != "rest" {
			t.Errorf("the start is on record as %q's by %q", last.Actor, last.Via)
		}
		for what, s := range map[string]*sandbox.Sandbox{"without auto_start": manual, "paused by a caller": paused, "stopped by a caller": stopped} {
			before, events := h.get(s.ID), len(h.events(s.ID))
			_, err := h.files.StatFile(t.Context(), reader, string(s.ID), "/workspace", "")
			wantCode(t, err, fault.State)
			if got := h.get(s.ID); got.State != before.State || len(h.events(s.ID)) != events {
				t.Errorf("one %s is %s, with %d new events", what, got.State, len(h.events(s.ID))-events)
			}
		}
	})
}
