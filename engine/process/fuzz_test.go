// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package process

import "testing"

// FuzzPlace holds that a cursor is refused or is a place that is written as one, and that a signal has a number.
func FuzzPlace(f *testing.F) {
	for _, s := range []string{"", "1.abcdefgh12345678", ".", "zzzzzzzzzzzzzzzzzz.a", "-1.abcdefgh12345678", "SIGTERM", "9", "term", "-9", "65"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, ok := parsePlace(s); ok && s != "" {
			if again, ok := parsePlace(p.String()); !ok || again != p {
				t.Errorf("%q is %+v, and written %q", s, p, p)
			}
		}
		if n, err := ParseSignal(s); err == nil && (n < 1 || n > 64) {
			t.Errorf("%q is the signal %d", s, n)
		}
	})
}
