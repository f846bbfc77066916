// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package aptsource

import "testing"

// FuzzSources holds that what is read of a source of packages, in either form, reads as itself when it is written.
func FuzzSources(f *testing.F) {
	for _, s := range []string{"Types: deb\nURIs: http://a\nSuites: b\n\n# c\nX:\n y\n", "deb [arch=amd64,arm64 signed-by=/x] http://a b c # d", "deb [", " : \n:\n", "deb\thttp://a b c", "A: b\n \n c\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range append(ParseDeb822(text), ParseOneLine(text)...) {
			if again := ParseDeb822(s.Text()); len(again) > 1 {
				t.Errorf("%q: a stanza becomes %d: %q", text, len(again), s.Text())
			}
		}
	})
}
