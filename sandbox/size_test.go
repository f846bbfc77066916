// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"math"
	"strings"
	"testing"

	"sandpit.dev/fault"
)

func TestSizesAreFoundByNameAndByLimits(t *testing.T) {
	all := DefaultSizes()
	if err := all.Check("sizes"); err != nil {
		t.Fatal(err)
	}
	if s, err := all.Named("medium"); err != nil || s != (Size{"medium", 2, 4096}) {
		t.Errorf("got %v, %v", s, err)
	}
	_, err := all.Named("huge")
	if e := fault.As(err); e.Code != fault.Invalid || !strings.Contains(e.Message, "small, medium, large") || e.Fields[0].Name != "size" {
		t.Errorf("one that there is not: got %v", err)
	}
	if got := all.Of(Limits{CPU: 4, MemoryMB: 8192, DiskMB: 1}); got != "large" {
		t.Errorf("got %q, want large", got)
	}
	if got := all.Of(Limits{CPU: 4, MemoryMB: 8191}); got != "" {
		t.Errorf("of no size: got %q", got)
	}
}

func TestASizeFillsInWhatLimitsDoNotSay(t *testing.T) {
	all := DefaultSizes()
	for _, row := range []struct {
		size       string
		given, got Limits
	}{
		{"large", Limits{DiskMB: 7}, Limits{CPU: 4, MemoryMB: 8192, DiskMB: 7}},
		{"large", Limits{MemoryMB: 512}, Limits{CPU: 4, MemoryMB: 512}},
		{"small", Limits{CPU: 2, MemoryMB: 512}, Limits{CPU: 2, MemoryMB: 512}},
		{"", Limits{CPU: 2}, Limits{CPU: 2}},
	} {
		if got, err := all.Fill(row.size, row.given); err != nil || got != row.got {
			t.Errorf("%q over %+v: got %+v, %v, want %+v", row.size, row.given, got, err, row.got)
		}
	}
	if _, err := all.Fill("huge", Limits{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("of no size: got %v", err)
	}
}

func TestATableOfSizesIsChecked(t *testing.T) {
	for field, bad := range map[string]Sizes{
		"sizes":               {},
		"sizes.Big":           {{"Big", 1, 1024}},
		"sizes.":              {{"", 1, 1024}},
		"sizes.a.cpu_cores":   {{"b", 1, 1024}, {"a", math.NaN(), 1024}},
		"sizes.b.cpu_cores":   {{"b", 65, 1024}},
		"sizes.c.memory_mb":   {{"c", 1, 15}},
		"sizes.c.d.memory_mb": {{"c.d", 1, 15}},
	} {
		err := bad.Check("sizes")
		if e := fault.As(err); e.Code != fault.Invalid || len(e.Fields) != 1 || !strings.HasPrefix(field, e.Fields[0].Name) {
			t.Errorf("%s: got %v", field, err)
		}
	}
	if err := make(Sizes, 17).Check("sizes"); !fault.Is(err, fault.Invalid) {
		t.Errorf("too many: got %v", err)
	}
}
