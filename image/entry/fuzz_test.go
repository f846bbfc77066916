// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package entry_test

import (
	"testing"
	"testing/fstest"

	"sandpit.dev/fault"
	"sandpit.dev/image/entry"
)

// FuzzEntry holds that an operator's entry is refused with a line, or is one, whatever the text is.
func FuzzEntry(f *testing.F) {
	for _, e := range entry.Shipped() {
		f.Add([]byte("name: " + e.Name + "\nbase: python\nsteps:\n  - run: true\n"))
	}
	f.Add([]byte("name: a\nsteps: &s [{pip: [x]}, {apt: ['-o=x']}]\nmore: *s\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("name: x\nbase: python\nsteps:\n  - file: {path: ../../etc, from: ../x, mode: 09}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := entry.Parse("x.yaml", text, fstest.MapFS{"x": {Data: []byte("y")}})
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if e.Name == "" {
			t.Errorf("%q: an entry without a name", text)
		}
	})
}
