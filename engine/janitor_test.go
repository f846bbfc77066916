// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/engine"
	"sandpit.dev/engine/metrics"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/engine/volume"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

var storeAll = engine.SandboxesRequest{}

// figure reads one figure, the sum over its labels.
func figure(t testing.TB, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			sum := 0.0
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
			return sum
		}
	}
	t.Fatalf("there is no figure %s", name)
	return 0
}

// plant makes an instance that no record owns, with an event about it or without.
func (h *house) plant(heardOf bool) sandbox.ID {
	h.t.Helper()
	id := sandbox.NewID()
	if heardOf {
		ev := &sandbox.Event{Sandbox: id, Project: "default", Type: sandbox.EventDeleted, At: time.Now(), Actor: "alice", Via: "rest", Done: true, OK: true}
		err := h.store.Update(context.Background(), func(tx store.Tx) error { return tx.Events().Append(ev) })
		if err != nil {
			h.t.Fatal(err)
		}
	}
	if _, err := h.host.Driver().Create(context.Background(), runtime.Spec{ID: id, Image: runtime.Image{Root: "/"}, Hostname: "x"}); err != nil {
		h.t.Fatal(err)
	}
	return id
}

func TestJanitor(t *testing.T) {
	quick := func(reg *prometheus.Registry) func(*engine.Options) {
		return func(o *engine.Options) {
			o.JanitorRound, o.Metrics = 60*time.Millisecond, metrics.New(reg)
		}
	}
	t.Run("RemovesWhatNoRecordOwnsAndNothingElse", func(t *testing.T) {
		reg := prometheus.NewRegistry()
		h := open(t, t.TempDir(), quick(reg), withPools(nil, prewarm.Pool{Image: "python", Min: 2}))
		up, down := h.create(engine.CreateRequest{}), h.create(engine.CreateRequest{})
		if _, err := h.engine.Stop(t.Context(), alice, string(down.ID)); err != nil {
			t.Fatal(err)
		}
		h.filled(2)
		keep := h.instances()
		rounds := figure(t, reg, "sandpit_janitor_rounds_total")
		foreign := h.plant(false)
		var orphans []sandbox.ID
		for range 40 { // more than a tick removes
			orphans = append(orphans, h.plant(true))
		}
		until(t, "the orphans are removed", func() bool {
			return !slices.ContainsFunc(h.instances(), func(id sandbox.ID) bool { return slices.Contains(orphans, id) })
		})
		if n := figure(t, reg, "sandpit_janitor_rounds_total") - rounds; n < 2 {
			t.Errorf("it took %v rounds; each has to be seen twice", n)
		}
		until(t, "another round", func() bool { return figure(t, reg, "sandpit_janitor_rounds_total") > rounds+8 })
		now := h.instances()
		for _, id := range append(keep, foreign, up.ID, down.ID) {
			if !slices.Contains(now, id) {
				t.Errorf("%s is gone", id)
			}
		}
		if n := figure(t, reg, "sandpit_janitor_removed_total"); n != 40 {
			t.Errorf("sandpit_janitor_removed_total: %v", n)
		}
		if n := figure(t, reg, "sandpit_janitor_foreign_total"); n != 1 {
			t.Errorf("sandpit_janitor_foreign_total: %v", n)
		}
		h.exec(string(up.ID), "true")
	})
	t.Run("KnowsSnapshotsAndVolumes", func(t *testing.T) {
		reg := prometheus.NewRegistry()
		h := open(t, t.TempDir(), quick(reg), func(o *engine.Options) {
			o.Runtimes["memory"] = o.Runtimes["memory"].(*faulty).Driver // with all that it can do
		})
		d := h.host.Driver()
		s := h.create(engine.CreateRequest{})
		kept, err := h.engine.CreateSnapshot(t.Context(), alice, string(s.ID), engine.SnapshotRequest{Name: "kept"})
		if err != nil {
			t.Fatal(err)
		}
		vol, err := h.volumes().CreateVolume(t.Context(), alice, volume.Request{Name: "data"})
		if err != nil {
			t.Fatal(err)
		}
		plant := func(snapshot bool, heard sandbox.EventType) sandbox.ID {
			t.Helper()
			id := sandbox.NewID()
			var err error
			if heard != "" {
				ev := &sandbox.Event{ProcessID: string(id), Project: "default", Type: heard, At: time.Now(), Actor: "alice", Via: "rest", Done: true, OK: true}
				if snapshot {
					ev.Sandbox = s.ID
				}
				err = h.store.Update(t.Context(), func(tx store.Tx) error { return tx.Events().Append(ev) })
			}
			switch {
			case err != nil:
			case snapshot:
				_, err = d.Snapshot(t.Context(), s.ID, id)
			default:
				err = d.CreateVolume(t.Context(), id, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		stays := []sandbox.ID{kept.ID, vol.ID, plant(true, ""), plant(false, ""), plant(false, sandbox.EventVolume)}
		goes := []sandbox.ID{plant(true, sandbox.EventSnapshot), plant(true, sandbox.EventSnapshotDeleted), plant(false, sandbox.EventVolumeDeleted)}
		all := func() []sandbox.ID {
			snaps, err := d.Snapshots(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			vols, err := d.Volumes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return append(snaps, vols...)
		}
		until(t, "the orphans are removed", func() bool {
			return !slices.ContainsFunc(all(), func(id sandbox.ID) bool { return slices.Contains(goes, id) })
		})
		rounds := figure(t, reg, "sandpit_janitor_rounds_total")
		until(t, "more rounds", func() bool { return figure(t, reg, "sandpit_janitor_rounds_total") > rounds+3 })
		for _, id := range stays {
			if !slices.Contains(all(), id) {
				t.Errorf("%s is gone; of %v only what an event knows is to go", id, stays)
			}
		}
		if n := figure(t, reg, "sandpit_janitor_foreign_total"); n != 3 {
			t.Errorf("sandpit_janitor_foreign_total: %v", n)
		}
	})
	t.Run("IsNotInTheWayOfWhatIsBeingMade", func(t *testing.T) {
		reg := prometheus.NewRegistry()
		h := open(t, t.TempDir(), func(o *engine.Options) {
			o.JanitorRound, o.Metrics = 12*time.Millisecond, metrics.New(reg)
		})
		for range 30 {
			s := h.create(engine.CreateRequest{})
			h.exec(string(s.ID), "true")
			if err := h.engine.Delete(t.Context(), alice, string(s.ID)); err != nil {
				t.Fatal(err)
			}
		}
		if n := figure(t, reg, "sandpit_janitor_removed_total"); n != 0 {
			t.Errorf("it removed %v things in the middle of their life", n)
		}
	})
}
