// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package counter

import (
	"strings"
	"testing"
)

func TestCountersAreReadFromEitherVersion(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		read       func(*strings.Reader) (uint64, error)
		want       uint64
	}{
		{"oom v1", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", func(r *strings.Reader) (uint64, error) { return OOMKills(r) }, 7},
		{"oom v2", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n", func(r *strings.Reader) (uint64, error) { return OOMKills(r) }, 2},
		{"pids", "max 31\n", func(r *strings.Reader) (uint64, error) { return PIDsRefused(r) }, 31},
		{"pids without a line end", "max 18446744073709551615", func(r *strings.Reader) (uint64, error) { return PIDsRefused(r) }, 1<<64 - 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := strings.NewReader(tc.text)
			for range 2 { // a second reading starts at the front again
				if got, err := tc.read(r); err != nil || got != tc.want {
					t.Errorf("got %d, %v, want %d", got, err, tc.want)
				}
			}
		})
	}
}

func TestCountersRefuseWhatIsNone(t *testing.T) {
	for _, text := range []string{"", "max", "max \n", "max -1\n", "max 1 2\n", "maximum 3\n", "max 18446744073709551616\n", strings.Repeat("x", 9999)} {
		if n, err := PIDsRefused(strings.NewReader(text)); err == nil {
			t.Errorf("%.20q: got %d, want an error", text, n)
		}
	}
}
