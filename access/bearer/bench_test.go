// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer_test

import (
	"testing"

	"sandpit.dev/access/bearer"
)

// BenchmarkCheck measures the check of a token in each request: the server's own token, one that
// was checked before, and an unknown one.
func BenchmarkCheck(b *testing.B) {
	f := newFixture(b)
	_, secret := f.create(b, bearer.NewToken{Name: "agent"})
	for _, c := range []struct {
		name, token string
		valid       bool
	}{{"Admin", adminToken, true}, {"Known", secret, true}, {"Nobody's", "nobody-has-this-token", false}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Check(b.Context(), c.token); (err == nil) != c.valid {
					b.Fatal(err)
				}
			}
		})
	}
}
