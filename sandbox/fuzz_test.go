// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// FuzzNetwork holds that what a policy is made of is refused in the caller's words, or is in a form that reads as itself.
func FuzzNetwork(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8", "::ffff:1.2.3.4/100", "fe80::1%eth0", "1.2.3.4", "8000-8100", "0", "65536", "*.example.org", "*.org", "a..b", "xn--e1afmkfd", "EXAMPLE.org.", strings.Repeat("a.", 130), "-", "_x._tcp.example"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := sandbox.ParseCIDR("f", s); err == nil {
			if again, err := sandbox.ParseCIDR("f", p.String()); err != nil || again != p || p.Masked() != p || p.Addr().Is4In6() {
				t.Errorf("%q is %v, which reads as %v (%v)", s, p, again, err)
			}
		} else if fault.Of(err) != fault.Invalid {
			t.Errorf("%q: %v", s, err)
		}
		if r, err := sandbox.ParsePorts("f", s); err == nil && (r.First == 0 || r.Last < r.First) {
			t.Errorf("%q is the ports %v", s, r)
		}
		if name, err := sandbox.CheckDomain("f", s); err == nil {
			if again, err := sandbox.CheckDomain("f", name); err != nil || again != name || strings.ContainsAny(name, " /\\\x00\n") || name != strings.ToLower(name) {
				t.Errorf("%q is the name %q, which reads as %q (%v)", s, name, again, err)
			}
		}
	})
}
