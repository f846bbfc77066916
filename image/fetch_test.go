// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"testing"
	"time"
)

func TestWhatAptFetchesIsShownInBytes(t *testing.T) {
	now := time.Unix(1000, 0)
	f := &aptFetch{now: func() time.Time { return now }}
	for i, row := range []struct{ line, want string }{
		{"Get:1 http://mirror.example/debian trixie InRelease [140 kB]", ""}, // a list is no package
		{"Get:2 http://mirror.example/debian trixie/main amd64 Packages [9,670 kB]", ""},
		{"0 upgraded, 3 newly installed, 0 to remove and 0 not upgraded.", ""},
		{"Need to get 10.5 MB/20.0 MB of archives.", ""},
		{"After this operation, 61.4 MB of additional disk space will be used.", ""},
		{"Get:1 http://mirror.example/debian trixie/main amd64 libc6 amd64 2.41-12 [2,000 kB]", "fetching libc6: 0.0 MB of 10.5 MB"},
		{"Get:2 http://mirror.example/debian trixie/main amd64 perl amd64 5.40 [8,000 kB]", "fetching perl: 2.0 MB of 10.5 MB · 1.0 MB/s · 9s left"},
		{"Get:3 http://mirror.example/debian trixie/main amd64 tzdata all 2026a [500 kB]", "fetching tzdata: 10.0 MB of 10.5 MB · 2.5 MB/s · 1s left"},
		{"Get:4 http://mirror.example/debian trixie/main amd64 odd all 1 [nothing]", ""},
		{"Fetched 10.5 MB in 4s (2,625 kB/s)", ""},
		{"Get:1 http://mirror.example/debian trixie/main amd64 late all 1 [1 kB]", ""},
		{"Need to get 0 B/10.5 MB of archives.", ""},
		{"Need to get 50.0 MB of archives.", ""},
		{"Get:1 http://mirror.example/debian trixie/main amd64 gcc-14 amd64 14.2 [50.0 MB]", "fetching gcc-14: 10.5 MB of 60.5 MB"},
		{"Unpacking gcc-14 (14.2) ...", ""},
	} {
		if got := f.line(row.line); got != row.want {
			t.Errorf("%d: got %q, want %q", i, got, row.want)
		}
		if row.want != "" {
			now = now.Add(2 * time.Second)
		}
	}
	if got := f.part(); f.done != 60_500_000 || got <= 0.9 || got > 1 {
		t.Errorf("in the end %d bytes, which is %v", f.done, got)
	}
	for s, want := range map[string]int64{"12 B": 12, "1,234 kB": 1_234_000, "1.5 GB": 1_500_000_000, "": 0, "x kB": 0, "-1 B": 0, "5 XB": 0, "99999999999999999999 TB": 0} {
		if got := aptBytes(s); got != want {
			t.Errorf("%q: got %d, want %d", s, got, want)
		}
	}
}
