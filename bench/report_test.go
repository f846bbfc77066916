// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"testing"
)

func TestReportText(t *testing.T) {
	text := func(r *Report) string {
		var b strings.Builder
		if err := r.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	f := &Figures{N: 100, OK: 99, P50: 12.34}
	t.Run("WhatWasNotMeasuredHasNoRow", func(t *testing.T) {
		if got := text(&Report{}); strings.Contains(got, "<nil>") || strings.Contains(got, "at once") {
			t.Errorf("an empty report says\n%s", got)
		}
	})
	t.Run("WhatIsLeftIsTold", func(t *testing.T) {
		got := text(&Report{Throughput: &Throughput{Sustained: &Sustained{Life: f, Left: []string{"process 7 (sleep): 1, before 0"}}}})
		if !strings.Contains(got, "LEFT process 7 (sleep)") || strings.Contains(got, "left nothing") {
			t.Errorf("a leak is not told:\n%s", got)
		}
	})
	t.Run("NothingIsLeftOnlyWhereItWasLookedFor", func(t *testing.T) {
		if got := text(&Report{Throughput: &Throughput{Sustained: &Sustained{Life: f}}}); strings.Contains(got, "left nothing") {
			t.Errorf("nobody looked:\n%s", got)
		}
		if got := text(&Report{Throughput: &Throughput{Sustained: &Sustained{Life: f, Left: []string{}}}}); !strings.Contains(got, "left nothing") {
			t.Errorf("nothing was left:\n%s", got)
		}
	})
	t.Run("EachPartHasItsRows", func(t *testing.T) {
		got := text(&Report{
			Burst:    &Burst{Sandboxes: 100, Servers: []Crowd{{Prewarmed: 16, AtOnce: f, Compute: Compute{Burst: f}}}},
			Transfer: &Transfer{Files: []Moved{{What: "a file", Up: f, UpSpeed: new(81.0), DownSpeed: new(82.0)}}},
			Inside:   &Inside{Store: "btrfs on a loop device", DataFS: "ext4", Work: []Work{{Kind: "git", Inside: f, Sandbox: &Spread{Median: 1.02}, Loop: &Spread{Median: 1.3}}}},
			Density:  &Density{Asked: 9, Alive: 7, Ended: "no memory", Steps: []Crowded{{Alive: 7, First: f}}},
			Records:  &Records{Steps: []Recorded{{Commands: 10, One: f}}}, Registered: &Registered{Before: []Listed{{Sandboxes: 10, List: f}}},
		})
		for _, want := range []string{
			"100 at once, 16 prewarmed", "the loop, 100 at once", "upload a file", "upload 81 MB/s, download 82 MB/s", "git, inside",
			"git inside takes 1.020", "takes 1.300", "first command beside 7", "of 9 sandboxes 7 were alive", "events of one command", "list 50 of 10 stopped", "99 of 100",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not told:\n%s", want, got)
			}
		}
	})
}
