// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/netip"
	"strings"
	"testing"
)

// FuzzHeaders holds that a host of a request is compared in one form, that no other origin is ours, and that only ids
// that a log can have are taken over.
func FuzzHeaders(f *testing.F) {
	for _, s := range []string{"127.0.0.1:80", "[::1]:80", "LOCALHOST.", "[::ffff:127.0.0.1]", "evil.example", "a:b:c", "http://127.0.0.1:80", "https://evil.example/127.0.0.1:80", "null", "id-1_2.3", "a\r\nb", "]["} {
		f.Add(s, "127.0.0.1:80")
	}
	f.Fuzz(func(t *testing.T, s, host string) {
		name := canonicalHost(hostName(s))
		if again := canonicalHost(name); again != name {
			if _, err := netip.ParseAddr(name); err == nil || !strings.HasSuffix(name, ".") {
				t.Errorf("%q is the host %q, which is the host %q", s, name, again)
			}
		}
		if sameOrigin(s, host) && !strings.EqualFold(s, "http://"+host) && !strings.EqualFold(s, "https://"+host) {
			t.Errorf("%q is of the same origin as %q", s, host)
		}
		if id := requestID(s); !saneID(id) || id != s && saneID(s) {
			t.Errorf("%q makes the id %q", s, id)
		}
	})
}
