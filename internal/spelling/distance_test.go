// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spelling

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"timeout", "timeout", 0}, {"timout", "timeout", 1}, {"comand", "command", 1},
		{"memroy", "memory", 2}, {"cwd", "cmd", 1}, {"env", "argv", 3}, {"a", "abcdef", 5},
		{strings.Repeat("x", 1<<20), "path", 1<<20 - 4},
	} {
		if got := Distance(tc.a, tc.b); got != tc.want {
			t.Errorf("from %.20q to %q: got %d, want %d", tc.a, tc.b, got, tc.want)
		}
		if got := Distance(tc.b, tc.a); got != tc.want {
			t.Errorf("from %q to %.20q: got %d, want %d", tc.b, tc.a, got, tc.want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"command", "cwd", "memory_mb", "timeout_seconds"}
	for name, want := range map[string]string{
		"comand": "command", "cmd": "command", "Memory-MB": "memory_mb", "memory": "memory_mb", "cwx": "cwd", "": "", "nonsense": "",
		strings.Repeat("x", 1<<20): "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%.20q: got %q, want %q", name, got, want)
		}
	}
}
