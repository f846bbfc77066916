// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/engine"
	"sandpit.dev/engine/metrics"
	"sandpit.dev/engine/retention"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// past appends events of a sandbox as old as told.
func (h *house) past(id sandbox.ID, n int, age time.Duration) {
	h.t.Helper()
	err := h.store.Update(context.Background(), func(tx store.Tx) error {
		for range n {
			ev := &sandbox.Event{Sandbox: id, Project: "default", Type: sandbox.EventExec, ProcessID: sandbox.NewProcessID(), At: time.Now().Add(-age), Done: true}
			if err := tx.Events().Append(ev); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestRetentionOfEvents(t *testing.T) {
	t.Parallel()
	keep := func(reg *prometheus.Registry, o retention.Options) func(*engine.Options) {
		return func(e *engine.Options) {
			e.JanitorRound, e.Metrics, e.Events = 5*time.Millisecond, metrics.New(reg), o
		}
	}
	t.Run("WhatIsTooOldGoesAlsoOfSandboxesThatAreDeleted", func(t *testing.T) {
		reg := prometheus.NewRegistry()
		h := open(t, t.TempDir(), keep(reg, retention.Options{}))
		s := h.create(engine.CreateRequest{Key: "box"})
		gone := sandbox.NewID()
		const old, young = 91 * 24 * time.Hour, 89 * 24 * time.Hour
		h.past(gone, 700, old)
		h.past(gone, 1, young)
		h.past(s.ID, 700, old)
		h.past(s.ID, 1, young)
		h.exec("box", "true")
		h.await("the old events are deleted", func() bool { return len(h.events(gone)) == 1 && len(h.events(s.ID)) == 4 })
		until(t, "they are counted", func() bool { return figure(t, reg, "sandpit_events_pruned_total") == 1400 })
		if _, _, err := h.engine.Activity(t.Context(), alice, "box", engine.ActivityRequest{After: 1}); err != nil {
			t.Error(err)
		}
	})
	t.Run("WhatAProjectHasTooManyGoes", func(t *testing.T) {
		h := open(t, t.TempDir(), keep(prometheus.NewRegistry(), retention.Options{Count: 50}))
		s := h.create(engine.CreateRequest{Key: "box"})
		h.past(s.ID, 300, 0)
		h.await("the surplus is deleted", func() bool { return len(h.events(s.ID)) <= 53 })
		got := types(h.events(s.ID))
		if got[0] != sandbox.EventCreated {
			t.Errorf("got %v, want what tells that the sandbox is ours first", got[0])
		}
	})
	t.Run("ACommandWithoutAResultKeepsItsRowAndGetsIt", func(t *testing.T) {
		h := open(t, t.TempDir(), keep(prometheus.NewRegistry(), retention.Options{Keep: time.Nanosecond}))
		s := h.create(engine.CreateRequest{Key: "box"})
		p, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "read line; exit 7", StreamStdin: true})
		if err != nil {
			t.Fatal(err)
		}
		h.past(s.ID, 30, time.Hour)
		h.await("all else is deleted", func() bool { return len(h.events("")) <= 2 })
		evs := h.events(s.ID)
		if evs[0].ProcessID != p.ID || evs[0].Done {
			t.Fatalf("got %+v, want the row of the command that runs", evs[0])
		}
		if err := h.engine.KillProcess(t.Context(), alice, "box", p.ID); err != nil {
			t.Fatal(err)
		}
		h.await("its result is written", func() bool { return len(h.events(s.ID)) == 0 || h.events(s.ID)[0].Done })
	})
}
