// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"testing"
	"time"
)

func TestListsOfThePast(t *testing.T) {
	var p past
	began := time.Now()
	p.saw("100")
	p.saw("90")
	for _, c := range []struct {
		version string
		after   time.Duration
		old     bool
	}{
		{"100", 0, false}, {"99", 0, true}, {"101", time.Second, false}, {"100", 2 * time.Second, true}, {"no number", 3 * time.Second, false}, // which says nothing of its age
		{"101", 4 * time.Second, false},
		{"50", 10 * time.Second, true}, {"60", 69 * time.Second, true}, {"70", 71 * time.Second, false}, // the store was restored
		{"70", 72 * time.Second, false}, {"69", 73 * time.Second, true},
	} {
		if got := p.isOld(c.version, began.Add(c.after)); got != c.old {
			t.Errorf("after %v the list %s is old: %t", c.after, c.version, got)
		}
	}
}
