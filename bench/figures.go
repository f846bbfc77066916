// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Figures sums up repeated runs of one thing.
type Figures struct {
	N       int     `json:"n"`  // runs
	OK      int     `json:"ok"` // of them that worked; the rest counts only here
	Success float64 `json:"success_rate"`
	Min     float64 `json:"min_ms"`
	P50     float64 `json:"p50_ms"`
	P95     float64 `json:"p95_ms"`
	P99     float64 `json:"p99_ms"`
}

// series collects runs.
type series struct {
	n  int
	ok []time.Duration
}

func (s *series) add(d time.Duration, err error) {
	s.n++
	if err == nil {
		s.ok = append(s.ok, d)
	}
}

// figures returns nil where nothing was run.
func (s *series) figures() *Figures {
	if s.n == 0 {
		return nil
	}
	f := &Figures{N: s.n, OK: len(s.ok), Success: float64(len(s.ok)) / float64(s.n)}
	sorted := slices.Sorted(slices.Values(s.ok))
	f.Min, f.P50, f.P95, f.P99 = ms(rank(sorted, 0)), ms(rank(sorted, .5)), ms(rank(sorted, .95)), ms(rank(sorted, .99))
	return f
}

// rank returns the nearest-rank quantile of what is sorted; zero of nothing.
func rank[T any](sorted []T, q float64) T {
	var zero T
	if len(sorted) == 0 {
		return zero
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func ms(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }

// median returns nil of nothing. It is rounded to two decimals, and to four where two
// would be few digits: below 1.
func median(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	m, unit := rank(slices.Sorted(slices.Values(values)), .5), 100.
	if math.Abs(m) < 1 {
		unit = 10_000
	}
	m = math.Round(m*unit) / unit
	return &m
}

// Spread is a median with the middle half of the values around it, so that one sees
// whether a small difference is one.
type Spread struct {
	N      int     `json:"n"`
	Low    float64 `json:"p25"`
	Median float64 `json:"median"`
	High   float64 `json:"p75"`
}

// spread returns nil of nothing.
func spread(values []float64) *Spread {
	if len(values) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	at := func(q float64) float64 { return math.Round(rank(sorted, q)*10_000) / 10_000 }
	return &Spread{N: len(sorted), Low: at(.25), Median: at(.5), High: at(.75)}
}

func (s *Spread) String() string {
	return fmt.Sprintf("%.3f (middle half %.3f to %.3f)", s.Median, s.Low, s.High)
}
