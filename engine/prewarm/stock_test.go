// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package prewarm

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/engine/metrics"
)

// Creates that go on do not have a stock be filled again and again that cannot be filled. One
// whose image was not built yet is tried at the next create.
func TestAFailureIsNotRepeatedByEachCreate(t *testing.T) {
	for _, row := range []struct {
		name   string
		absent bool
		want   int
	}{
		{"it cannot be made", false, 0},
		{"its image is not built", true, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := New(Options{Image: "a", Recent: true, Min: 1, Max: 1, Refill: 1, Figures: metrics.Pool{
				Ready: prometheus.NewGauge(prometheus.GaugeOpts{}), Hits: prometheus.NewCounter(prometheus.CounterOpts{}), Misses: prometheus.NewCounter(prometheus.CounterOpts{}),
			}})
			now := time.Now()
			if n, _ := s.Due(now, time.Time{}, false); n != 1 {
				t.Fatalf("%d are due at the start, want 1", n)
			}
			s.Fail(row.absent)
			s.Count("a", false)
			if n, _ := s.Due(now.Add(time.Second), time.Time{}, false); n != row.want {
				t.Errorf("%d are due after a failure and a create, want %d", n, row.want)
			}
		})
	}
}
