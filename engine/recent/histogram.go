// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package recent

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// A histogram has four buckets for each doubling, from unit on; what is longer than the last is in that.
const (
	unit    = 64 * time.Microsecond
	buckets = 4 * 22 // up to about 20 minutes
)

type histogram [buckets]atomic.Uint32

func (h *histogram) add(d time.Duration) { h[bucketOf(d)].Add(1) }

// bucketOf returns the bucket of a time.
func bucketOf(d time.Duration) int {
	n := uint64(max(d, 0) / unit)
	if n < 4 {
		return int(n)
	}
	e := bits.Len64(n) - 3 // n>>e is 4 to 7
	return min(4*e+int(n>>e), buckets-1)
}

// fromOf returns where a bucket begins.
func fromOf(b int) time.Duration {
	if b < 4 {
		return time.Duration(b) * unit
	}
	e := b/4 - 1
	return time.Duration(4+b%4) << e * unit
}

// counts are what a histogram had at one time.
type counts [buckets]int64

func (h *histogram) read() (c counts) {
	for b := range h {
		c[b] = int64(h[b].Load())
	}
	return c
}

func (c *counts) plus(o *counts) {
	for b, n := range o {
		c[b] += n
	}
}

func (c *counts) times() (t Times) {
	for _, n := range c {
		t.Count += n
	}
	if t.Count > 0 {
		t.P50, t.P95 = c.below(t.Count, 50), c.below(t.Count, 95)
	}
	return t
}

// below returns the time that so many of 100 are not longer than: the middle of its bucket.
func (c *counts) below(all, percent int64) time.Duration {
	rank := max((all*percent+99)/100, 1)
	for b, n := range c {
		if rank -= n; rank <= 0 {
			return (fromOf(b) + fromOf(b+1)) / 2
		}
	}
	return fromOf(buckets)
}
