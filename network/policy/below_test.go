// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"sandpit.dev/sandbox"
)

func TestBelow(t *testing.T) {
	p := restricted(t, Operator{}, []string{"example.org", "*.example.org", "exact.example", "*.far.example", "*.near.far.example"}, nil)
	for name, want := range map[string]string{
		"example.org": "", "exact.example": "", // the list has them: nothing is made up
		"x.example.org": "*.example.org", "y.x.example.org": "*.example.org", "x.far.example": "*.far.example", "x.near.far.example": "*.near.far.example",
		"near.far.example":    "*.far.example",
		"_data.exact.example": "exact.example", "_data._tcp.exact.example": "exact.example", "_data.x.far.example": "*.far.example",
		"x.exact.example": "", "evil.example": "", "": "", // these are not allowed, and not looked up
	} {
		if got := p.Below(name); got != want {
			t.Errorf("%q is below %q, want %q", name, got, want)
		}
		if got := p.Name(name); want != "" && got != Allowed {
			t.Errorf("%q is below %q and refused: %s", name, want, got)
		}
	}
	for _, m := range []sandbox.NetworkMode{sandbox.NetworkOff, sandbox.NetworkOpen} {
		if got := New(sandbox.NetworkPolicy{Mode: m}, Operator{}).Below("x.example.org"); got != "" {
			t.Errorf("%s: %q", m, got)
		}
	}
}
