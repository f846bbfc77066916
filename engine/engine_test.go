// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/engine"
	"sandpit.dev/engine/metrics"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var _ engine.Images = (*image.Store)(nil)

func TestNew(t *testing.T) {
	h := open(t, t.TempDir())
	for name, change := range map[string]func(*engine.Options){
		"no store":              func(o *engine.Options) { o.Store = nil },
		"no images":             func(o *engine.Options) { o.Images = nil },
		"no runtimes":           func(o *engine.Options) { o.Runtimes = nil },
		"an unknown default":    func(o *engine.Options) { o.Default = "vax" },
		"limits out of bounds":  func(o *engine.Options) { o.Defaults.Limits.MemoryMB = 1 },
		"no default among many": func(o *engine.Options) { o.Runtimes = map[string]runtime.Driver{"a": h.faulty, "b": h.faulty} },
	} {
		o := options(h.store, h.faulty)
		change(&o)
		if _, err := engine.New(o); fault.Of(err) != fault.Invalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	h := open(t, t.TempDir(), func(o *engine.Options) {
		o.Defaults = engine.Defaults{IdleTimeout: -1, Retention: time.Hour, Limits: sandbox.Limits{Pids: 99}}
	})
	s := h.create(engine.CreateRequest{})
	want := sandbox.DefaultLimits()
	want.Pids = 99
	if s.IdleTimeout != 0 || s.Retention != time.Hour || s.Limits != want {
		t.Errorf("got %v, %v, %+v", s.IdleTimeout, s.Retention, s.Limits)
	}
}

func TestRunIsCalledOnce(t *testing.T) {
	h := open(t, t.TempDir())
	wantCode(t, h.engine.Run(t.Context()), fault.Internal)
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	h := open(t, t.TempDir(), func(o *engine.Options) { o.Metrics = metrics.New(reg) })
	s := h.create(engine.CreateRequest{})
	h.exec(string(s.ID), "true")
	h.exec(string(s.ID), "false")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			switch {
			case m.GetCounter() != nil:
				got[name] = m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				got[name] = m.GetGauge().GetValue()
			default:
				got[name] = float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	want := map[string]float64{
		"mcp_active_sandboxes":         1,
		"mcp_commands_total completed": 1, "mcp_commands_total failed": 1, "mcp_commands_total timed_out": 0,
		"mcp_command_duration_seconds": 2, "mcp_reaper_deletes_total": 0,
		"sandpit_sandboxes creating": 0, "sandpit_sandboxes running": 1, "sandpit_sandboxes stopping": 0,
		"sandpit_sandboxes stopped": 0, "sandpit_sandboxes archiving": 0, "sandpit_sandboxes archived": 0, "sandpit_sandboxes unarchiving": 0, "sandpit_sandboxes starting": 0, "sandpit_sandboxes deleting": 0,
		"sandpit_sandboxes pausing": 0, "sandpit_sandboxes paused": 0, "sandpit_sandboxes resuming": 0,
		"sandpit_sandboxes restoring": 0, "sandpit_sandboxes failed": 0, "sandpit_sandboxes_unresponsive": 0, "sandpit_events_pruned_total": 0,
		"sandpit_janitor_foreign_total": 0, "sandpit_janitor_removed_total instance": 0, "sandpit_janitor_removed_total snapshot": 0,
		"sandpit_janitor_removed_total volume": 0, "sandpit_janitor_rounds_total": 0,
		"sandpit_create_seconds": 1, "sandpit_exec_seconds": 2,
		"sandpit_events_total sandbox.created": 1, "sandpit_events_total sandbox.started": 1, "sandpit_events_total exec": 2,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
