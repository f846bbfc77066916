// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/internal/checktest"
	"sandpit.dev/sandbox"
)

func TestResize(t *testing.T) {
	t.Parallel()
	size := func(h *house, id sandbox.ID) sandbox.Limits {
		l, err := h.host.Limits(id)
		if err != nil {
			h.t.Fatal(err)
		}
		return l
	}
	t.Run("ChangesTheInstanceAndTheRecordUpAndDown", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		for _, m := range []int{1024, 256} {
			got, err := h.engine.Update(t.Context(), alice, "box", update.Patch{MemoryMB: &m, Pids: ptr(m)})
			if err != nil {
				t.Fatal(err)
			}
			checktest.Equal(t, "State", got.State, sandbox.Running)
			checktest.Equal(t, "Limits.MemoryMB", got.Limits.MemoryMB, m)
			checktest.Equal(t, "size(h, s.ID)", size(h, s.ID), got.Limits)
		}
		h.pause("box")
		if got, err := h.engine.Update(t.Context(), alice, "box", update.Patch{CPU: ptr(4.0)}); err != nil || size(h, s.ID) != got.Limits {
			t.Errorf("a paused one: %+v, %v, on the host %+v", got, err, size(h, s.ID))
		}
	})
	t.Run("ThatFailsChangesNothing", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		h.faulty.set(failing("resize"), nil)
		_, err := h.engine.Update(t.Context(), alice, "box", update.Patch{MemoryMB: ptr(1024), IdleTimeout: ptr(sandbox.MaxClock)})
		wantCode(t, err, fault.Unavailable)
		if got := h.get(s.ID); got.Limits != s.Limits || got.IdleTimeout != s.IdleTimeout || size(h, s.ID) != s.Limits {
			t.Errorf("got %+v, on the host %+v", got, size(h, s.ID))
		}
		h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted)
	})
	t.Run("UnderWhatIsInUseIsAConflict", func(t *testing.T) {
		h := open(t, t.TempDir())
		h.create(engine.CreateRequest{Key: "box"})
		if _, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Argv: []string{
			"python3", "-c", "b = bytearray(64 << 20); open('ready', 'w'); import time; time.sleep(60)"}}); err != nil {
			t.Fatal(err)
		}
		needs(t, "python3")
		h.exec("box", "until [ -e ready ]; do sleep 0.01; done")
		_, err := h.engine.Update(t.Context(), alice, "box", update.Patch{MemoryMB: ptr(32)})
		wantCode(t, err, fault.Conflict)
	})
	t.Run("WhoseRecordTheStoreRefusesIsTakenBack", func(t *testing.T) {
		var st *stubborn
		h := open(t, t.TempDir(), func(o *engine.Options) { st = &stubborn{Store: o.Store}; o.Store = st })
		s := h.create(engine.CreateRequest{Key: "box"})
		st.after(0)
		_, err := h.engine.Update(t.Context(), alice, "box", update.Patch{MemoryMB: ptr(1024)})
		wantCode(t, err, fault.Unavailable)
		st.heal()
		if got := size(h, s.ID); got != s.Limits {
			t.Errorf("on the host: %+v", got)
		}
	})
	t.Run("ThatTheRuntimeCannotDoNeedsAStoppedSandbox", func(t *testing.T) {
		h := open(t, t.TempDir())
		h.faulty.bare = true
		h.create(engine.CreateRequest{Key: "box"})
		p := update.Patch{MemoryMB: ptr(1024)}
		_, err := h.engine.Update(t.Context(), alice, "box", p)
		wantCode(t, err, fault.State)
		if r := fault.As(err).Remedy; !strings.Contains(r, "stop box") {
			t.Errorf("remedy: %q", r)
		}
		if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		if got, err := h.engine.Update(t.Context(), alice, "box", p); err != nil || got.Limits.MemoryMB != 1024 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestUpdateChecksWhatIsNew(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	_, err := h.engine.Update(t.Context(), alice, "box", update.Patch{
		OnIdle: ptr(sandbox.IdleAction("nap")), Checkpoints: ptr(sandbox.Checkpoints("often")), SlidingTTL: ptr(sandbox.MaxClock + 1)})
	wantCode(t, err, fault.Invalid)
	if n := len(fault.As(err).Fields); n != 3 {
		t.Errorf("%d fields: %v", n, err)
	}
	_, _, err = h.engine.Create(t.Context(), alice, engine.CreateRequest{
		OnIdle: ptr(sandbox.IdleAction("nap")), Checkpoints: ptr(sandbox.Checkpoints("often")), SlidingTTL: -1})
	wantCode(t, err, fault.Invalid)
	if n := len(fault.As(err).Fields); n != 3 {
		t.Errorf("%d fields: %v", n, err)
	}
}
