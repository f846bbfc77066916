// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/code"
	"sandpit.dev/engine"
)

func TestMetrics(t *testing.T) {
	needs(t, "bash")
	reg := prometheus.NewRegistry()
	h := open(t, t.TempDir(), func(o *code.Options) { o.Metrics = code.NewMetrics(reg) })
	h.create(engine.CreateRequest{Key: "box"})
	h.cell("box", code.Request{Language: "bash", Code: "true"})
	h.cell("box", code.Request{Language: "bash", Code: "exit 3"})
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
			if got[name] = m.GetCounter().GetValue(); m.GetHistogram() != nil {
				got[name] = float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	want := map[string]float64{"sandpit_code_cells_total bash ok": 1, "sandpit_code_cells_total bash ended": 1, "sandpit_code_seconds": 2}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
