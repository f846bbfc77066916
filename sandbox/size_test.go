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
