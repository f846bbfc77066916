// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"testing"
	"time"
	"unsafe"

	"sandpit.dev/runtime"
)

func TestAnHourTakesLessThanTwoKiB(t *testing.T) {
	if n := unsafe.Sizeof(known{}); n > 2048 {
		t.Errorf("it takes %d bytes", n)
	}
}

func TestARingKeepsTheLastHour(t *testing.T) {
	var r ring
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for n := range 90 {
		u := runtime.Use{MemoryBytes: int64(n) << 20, DiskBytes: -1, Tasks: int64(n)}
		net := Network{InRate: float64(n), OutRate: float64(2 * n), In: 1, Out: 1}
		if n == 89 {
			net = noNetwork
		}
		r.add(sampleOf(at.Add(time.Duration(n)*time.Minute), u, float64(n)/100, net))
	}
	all := r.since(at.Add(89 * time.Minute))
	if len(all) != minutes {
		t.Fatalf("it has %d", len(all))
	}
	for n, s := range all {
		m := n + 30
		net := Network{InRate: float64(m), OutRate: float64(2 * m), In: -1, Out: -1}
		if m == 89 {
			net = noNetwork
		}
		if want := (Sample{Network: net, At: at.Add(time.Duration(m) * time.Minute), CPUs: float64(m) / 100, MemoryBytes: int64(m) << 20, MemoryPeak: -1, DiskBytes: -1, Tasks: int64(m)}); s != want {
			t.Errorf("got %+v, want %+v", s, want)
		}
	}
	if left := r.since(at.Add(89*time.Minute + 50*time.Minute)); len(left) != 11 {
		t.Errorf("50 minutes later it has %d", len(left))
	}
}

func TestWhatGoesOverANetworkIsTheDifferenceOfTwoReadings(t *testing.T) {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	first := carried(Sample{}, 1000, 200, at)
	if first != (Network{-1, -1, 1000, 200}) {
		t.Errorf("the first: got %+v", first)
	}
	before := Sample{At: at, Network: first}
	if got := carried(before, 3000, 250, at.Add(10*time.Second)); got != (Network{200, 5, 3000, 250}) {
		t.Errorf("the second: got %+v", got)
	}
	if got := carried(before, 10, 250, at.Add(time.Second)); got.InRate >= 0 || got.OutRate >= 0 { // another server counts anew
		t.Errorf("of fewer than before: got %+v", got)
	}
	if got := carried(Sample{At: at, Network: noNetwork}, 10, 10, at.Add(time.Second)); got.InRate >= 0 {
		t.Errorf("after what was not counted: got %+v", got)
	}
	sum := nothing(at).with(Sample{Network: Network{200, 5, 0, 0}}).with(Sample{Network: noNetwork}).with(Sample{Network: Network{1, 1, 0, 0}})
	if sum.Network.InRate != 201 || sum.Network.OutRate != 6 {
		t.Errorf("together: got %+v", sum.Network)
	}
}

func TestARateIsOverTheTimeSinceTheLastSample(t *testing.T) {
	start := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		before Sample
		cpu    time.Duration
		want   float64
	}{
		{Sample{}, 5 * time.Second, 0.5},
		{Sample{At: start.Add(8 * time.Second), CPU: 4 * time.Second}, 5 * time.Second, 0.5},
		{Sample{At: start.Add(8 * time.Second), CPU: 40 * time.Second}, 5 * time.Second, 0.5}, // of another life
		{Sample{At: start.Add(10 * time.Second), CPU: 4 * time.Second}, 5 * time.Second, -1},
	} {
		if got := rate(c.before, runtime.Use{CPU: c.cpu}, start, start.Add(10*time.Second)); got != c.want {
			t.Errorf("%+v: got %v, want %v", c.before, got, c.want)
		}
	}
}
