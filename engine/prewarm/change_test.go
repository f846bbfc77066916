// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package prewarm

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/engine/metrics"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

func TestAStockIsResized(t *testing.T) {
	t.Parallel()
	s := New(Options{Image: "a", Runtime: "r", Min: 1, Max: 2, Refill: 1, Figures: metrics.Pool{
		Ready: prometheus.NewGauge(prometheus.GaugeOpts{}), Hits: prometheus.NewCounter(prometheus.CounterOpts{}), Misses: prometheus.NewCounter(prometheus.CounterOpts{}),
	}})
	now := time.Now()
	due := func(want int) {
		t.Helper()
		n, _ := s.Due(now, time.Time{}, false)
		if n != want {
			t.Errorf("%d are due, want %d", n, want)
		}
		for range n {
			s.Add(&Entry{ID: sandbox.NewID(), Image: image.Image{Name: "a"}})
		}
	}
	due(1)
	s.Resize(3, 5, 2)
	due(2)
	due(0)
	if i := s.Info(); i.Target != 3 || i.Ready != 3 || i.Images["a"] != 3 {
		t.Errorf("it is %+v", i)
	}
	s.Resize(0, 0, 1)
	if gone := s.Surplus(image.Image{}); len(gone) != 3 {
		t.Errorf("%d are too many, want 3", len(gone))
	}
	s.Count("a", false)
	due(0)
	if !s.empty() {
		t.Error("it is not empty")
	}
}
