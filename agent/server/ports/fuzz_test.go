// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ports

import "testing"

// FuzzProc holds that the addresses of sockets that the kernel shows are read whatever they look like.
func FuzzProc(f *testing.F) {
	for _, s := range []string{"0100007F:1F90", "00000000000000000000000001000000:0050", ":", "zz:1", "0100007F0:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if a, _, ok := parseAddress(s); ok && (!a.IsValid() || a.Is4In6()) {
			t.Errorf("%q is the address %v", s, a)
		}
	})
}
