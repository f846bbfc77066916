// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math"
	"slices"
)

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
