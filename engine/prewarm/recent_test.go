// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package prewarm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is ready is of the images that are asked for, in their proportions.
func TestRecentImages(t *testing.T) {
	for _, row := range []struct {
		asked []string
		want  map[string]int // of four
	}{
		{[]string{"a"}, map[string]int{"a": 4}},
		{[]string{"a", "b"}, map[string]int{"a": 2, "b": 2}},
		{[]string{"a", "a", "a", "b"}, map[string]int{"a": 3, "b": 1}},
		{[]string{"a", "a", "a", "a", "a", "a", "a", "b"}, map[string]int{"a": 4}},
		{[]string{"a", "b", "b", "b", "b", "b", "b", "b", "b"}, map[string]int{"b": 4}}, // a is forgotten
	} {
		var r recentImages
		for _, name := range row.asked {
			r.add(name)
		}
		got := make(map[string]int)
		for range 4 {
			got[r.next(got)]++
		}
		if d := cmp.Diff(row.want, got); d != "" {
			t.Errorf("after %v (-want +got)\n%s", row.asked, d)
		}
	}
	r := recentImages{names: []string{"a", "b"}}
	if got := r.next(nil); got != "b" {
		t.Errorf("of two that are due: %q, want the later one", got)
	}
}
