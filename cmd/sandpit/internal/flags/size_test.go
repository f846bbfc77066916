// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"testing"
	"time"
)

func TestLengthsOfTimeAndSizes(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"90": 90 * time.Second, "90s": 90 * time.Second, "15m": 15 * time.Minute, "7d": 7 * 24 * time.Hour, "1h30m": 90 * time.Minute, "0": 0,
	} {
		var p Period
		if err := p.Set(in); err != nil || p.Length != want {
			t.Errorf("%q is %v and %v, want %v", in, p.Length, err, want)
		}
	}
	for _, in := range []string{"", "soon", "-1", "-1s", "1.5d", "99999999999999d", "d"} {
		var p Period
		if err := p.Set(in); err == nil || p.Given {
			t.Errorf("%q is taken for %v", in, p.Length)
		}
	}
	for in, want := range map[string]int{"512": 512, "512M": 512, "512MB": 512, "512MiB": 512, "2G": 2048, "1.5g": 1536} {
		var m Megabytes
		if err := m.Set(in); err != nil || m.MiB != want {
			t.Errorf("%q is %d and %v, want %d", in, m.MiB, err, want)
		}
	}
	for _, in := range []string{"", "pizza", "-1", "0", "NaN", "inf", "1K", "1e300"} {
		var m Megabytes
		if err := m.Set(in); err == nil {
			t.Errorf("%q is taken for %d", in, m.MiB)
		}
	}
}
