// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

func TestRunsAreCounted(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	h := open(t, t.TempDir(), func(o *runs.Options) { o.Metrics = runs.NewMetrics(reg) })
	figures := func() map[string]float64 {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{"canceled": 0}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if m.GetGauge() != nil {
					got[f.GetName()] = m.GetGauge().GetValue()
				} else {
					got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
		return got
	}
	// A run is counted just after its end is on record.
	want := func(active, completed, failed, canceled float64) {
		all := map[string]float64{"mcp_active_runs": active, "completed": completed, "failed": failed, "canceled": canceled}
		for !maps.Equal(figures(), all) {
			select {
			case <-t.Context().Done():
				t.Fatalf("got %v, want %v", figures(), all)
			case <-time.After(time.Millisecond):
			}
		}
	}
	want(0, 0, 0, 0)
	h.run(runs.Request{Commands: shells("true")})
	h.run(runs.Request{Commands: shells("false")})
	long := h.startRun(runs.Request{Commands: shells("sleep 600")})
	want(1, 1, 1, 0)
	if run, err := h.runner.Cancel(t.Context(), alice, long.ID); err != nil || run.State != sandbox.RunCanceled {
		t.Fatalf("Cancel: %+v, %v", run, err)
	}
	want(0, 1, 1, 1)
}
