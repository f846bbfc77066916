// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer_test

import (
	"strings"
	"testing"

	"sandpit.dev/access/bearer"
	"sandpit.dev/fault"
)

// FuzzToken holds that no text is a token but the one that is, and that no answer shows what was sent.
func FuzzToken(f *testing.F) {
	a := newFixture(f)
	right := adminToken
	for _, s := range []string{right, right + " ", strings.ToUpper(right), "", "spt_", "spt_" + strings.Repeat("a", 40), "\x00", "spt_\xff", strings.Repeat("x", 5000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		_, err := a.Check(t.Context(), token)
		if (err == nil) != (token == right || token == "another-admin-token") {
			t.Fatalf("%q: %v", token, err)
		}
		if err != nil && (fault.Of(err) != fault.Unauthenticated || len(token) > 20 && strings.Contains(err.Error(), token)) {
			t.Errorf("%q: %v", token, err)
		}
		if err := bearer.CheckAdminToken(token); err != nil && len(token) > 20 && strings.Contains(err.Error(), token) {
			t.Errorf("%q: %v", token, err)
		}
	})
}
