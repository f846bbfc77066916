// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// bound is the most that something may cost, beside what it cost when the bound was set. Where it
// costs less since, both are to be lowered.
type bound struct {
	name string  // no spaces: the operation, a slash, what is counted
	seen float64 // on Linux 6.18 with cgroups v1 and the layers on a loop file of btrfs
	most float64
	why  string
}

// hold fails the test where something costs more than its bound, and tells each figure to who runs
// the tests.
func hold(t *testing.T, bounds []bound, got map[string]float64) {
	t.Helper()
	known := map[string]bool{}
	for _, b := range bounds {
		known[b.name] = true
		now, ok := got[b.name]
		if !ok {
			t.Errorf("%s has a bound and was not counted", b.name)
			continue
		}
		said := fmt.Sprintf("%.4g, at most %.4g, %.4g when it was set", now, b.most, b.seen)
		if now < 0.8*b.seen && b.seen > 2 {
			said += ": lower the bound"
		}
		t.Attr(b.name, said)
		if now == 0 && b.seen > 2 {
			t.Errorf("%s: nothing was counted", b.name)
		}
		if now > b.most {
			t.Errorf("%s: %s (%s)", b.name, said, b.why)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if !known[name] {
			t.Errorf("%s was counted, %.4g, and has no bound", name, got[name])
		}
	}
}

func TestBoundsLeaveNoRoomForADouble(t *testing.T) {
	for _, b := range slices.Concat(callBounds, allocationBounds, socketBounds, ratioBounds, quickRatioBounds) {
		switch {
		case strings.ContainsAny(b.name, " \t\n") || b.why == "":
			t.Errorf("%q: a name has no spaces, and a bound has a reason", b.name)
		case b.most < b.seen || b.most > 0 && b.most >= 2*b.seen:
			t.Errorf("%s: %g was seen and %g is allowed: a double must fail, and what is seen must not", b.name, b.seen, b.most)
		}
	}
}
