// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plot

import "math"

// scale maps values to places.
type scale struct {
	low, high float64 // values
	from, to  float64 // their places
	log       bool
}

// at returns a value's place; what is outside stands at the edge.
func (s scale) at(v float64) float64 {
	v = min(max(v, s.low), s.high)
	low, high := s.low, s.high
	if s.log {
		v, low, high = math.Log10(v), math.Log10(low), math.Log10(high)
	}
	return s.from + (v-low)/(high-low)*(s.to-s.from)
}

// decades is the range of whole powers of ten around values above 0; 1 to 10 without any.
func decades(values []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if shown(v) && v > 0 {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		return 1, 10
	}
	low, high = power(math.Floor(math.Log10(low))), power(math.Ceil(math.Log10(high)))
	if low == high {
		high *= 10
	}
	return low, high
}

// power is 10 to a whole number, exact where a float can be.
func power(n float64) float64 {
	p := 1.0
	for range int(math.Abs(n)) {
		p *= 10
	}
	if n < 0 {
		return 1 / p
	}
	return p
}

// shown reports whether a value can be drawn at all.
func shown(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// steps returns a distance for lines of a grid, about want of them up to high: 1, 2 or 5 times
// a power of ten.
func steps(high float64, want int) float64 {
	if high <= 0 || !shown(high) {
		return 1
	}
	raw := high / float64(want)
	p := power(math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if m*p >= raw {
			return m * p
		}
	}
	return 10 * p
}
