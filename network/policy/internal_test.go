// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"sandpit.dev/sandbox"
)

func TestNamesOfTheServersOwnNetwork(t *testing.T) {
	search := []string{"corp.example.org", "example.net"}
	open := New(sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, Operator{Search: search})
	allowing := New(sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, Operator{Search: search, Allow: prefixes("10.0.0.0/8")})
	for _, c := range []struct {
		name              string
		records, address  Reason // of open
		addressOfAllowing Reason
	}{
		{"example.org", Allowed, Allowed, Allowed},
		{"www.example.org", Allowed, Allowed, Allowed},
		{"mycorp.example.org", Allowed, Allowed, Allowed},
		{"local.example.org", Allowed, Allowed, Allowed},
		{"_dmarc.example.org", Allowed, Allowed, Allowed},
		{"thelocal", Private, Private, Allowed},
		{"printer", Private, Private, Allowed},
		{"_ldap._tcp.printer", Private, Private, Allowed},
		{"_ldap._tcp", Private, Private, Allowed},
		{"db.corp", Private, Private, Allowed},
		{"db.internal", Private, Private, Allowed},
		{"_kerberos._udp.a.b.local", Private, Private, Allowed},
		{"router.home.arpa", Private, Private, Allowed},
		{"x.onion", Private, Private, Allowed},
		{"1.0.168.192.in-addr.arpa", Private, Allowed, Allowed},
		{"8.8.8.8.in-addr.arpa", Private, Allowed, Allowed},
		{"10.in-addr.arpa", Private, Allowed, Allowed},
		{"d.f.ip6.arpa", Private, Allowed, Allowed},
		{"ipv4only.arpa", Private, Allowed, Allowed},
		{"corp.example.org", Private, Allowed, Allowed},
		{"_ldap._tcp.dc._msdcs.corp.example.org", Private, Allowed, Allowed},
		{"www.example.net", Private, Allowed, Allowed},
	} {
		if got := open.Records(c.name); got != c.records {
			t.Errorf("records of %s: %q", c.name, got)
		}
		if got := allowing.Records(c.name); got != c.records {
			t.Errorf("records of %s, with ranges that are allowed: %q", c.name, got)
		}
		if got := open.Addresses(c.name); got != c.address {
			t.Errorf("addresses of %s: %q", c.name, got)
		}
		if got := allowing.Addresses(c.name); got != c.addressOfAllowing {
			t.Errorf("addresses of %s, with ranges that are allowed: %q", c.name, got)
		}
	}
}
