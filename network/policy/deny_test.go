// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"testing"

	"sandpit.dev/sandbox"
)

func denying(t *testing.T, domains, cidrs []string, allowed ...string) *Policy {
	t.Helper()
	p := sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, DenyDomains: domains, AllowDomains: allowed}
	for _, c := range cidrs {
		r, err := sandbox.ParseCIDR("deny_cidrs", c)
		if err != nil {
			t.Fatal(err)
		}
		p.DenyCIDRs = append(p.DenyCIDRs, r)
	}
	p, err := p.Normal()
	if err != nil {
		t.Fatal(err)
	}
	return New(p, Operator{})
}

func TestNamesThatAreDenied(t *testing.T) {
	p := denying(t, []string{"Evil.example", "*.bad.example", "*.all.example", "all.example"}, nil, "good.bad.example", "*.fine.all.example")
	for name, want := range map[string]Reason{
		"evil.example": Denied, "_http._tcp.evil.example": Denied, "www.evil.example": Allowed, "notevil.example": Allowed, "example": Allowed,
		"bad.example": Allowed, "x.bad.example": Denied, "y.x.bad.example": Denied, "good.bad.example": Allowed, "_x.good.bad.example": Allowed, "a.good.bad.example": Denied,
		"all.example": Denied, "fine.all.example": Denied, "x.fine.all.example": Allowed, "anything.org": Allowed,
	} {
		if got := p.Name(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestAddressesThatAreDenied(t *testing.T) {
	p := denying(t, nil, []string{"93.184.0.0/16", "2606:2800::/32"}, "allowed.example", "*.wild.example")
	for _, c := range []struct {
		name, address string
		want          Reason
	}{
		{"allowed.example", "93.184.216.1", Allowed}, {"x.wild.example", "93.184.216.1", Allowed}, {"other.example", "93.184.216.1", Denied},
		{"other.example", "93.185.0.1", Allowed}, {"other.example", "2606:2800::1", Denied}, {"allowed.example", "2606:2800::1", Allowed},
		{"other.example", "::ffff:93.184.216.1", Denied}, {"other.example", "64:ff9b::5db8:d801", Denied}, // that address, carried in one of IPv6
		{"allowed.example", "10.0.0.1", Private},
	} {
		if got := p.AddressOf(c.name, netip.MustParseAddr(c.address)); got != c.want {
			t.Errorf("%s for %s: %q, want %q", c.address, c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		to    string
		named bool
		want  Reason
	}{
		{"93.184.216.1:443", false, Denied}, {"93.184.216.1:443", true, Allowed}, {"93.185.0.1:443", false, Allowed},
		{"[::ffff:93.184.216.1]:443", false, Denied}, {"[64:ff9b::5db8:d801]:443", false, Denied}, {"10.0.0.1:443", false, Private},
	} {
		if got := p.Connection(netip.MustParseAddrPort(c.to), c.named); got != c.want {
			t.Errorf("%s, named %v: %q, want %q", c.to, c.named, got, c.want)
		}
	}
}

func TestWhetherANameMattersWhereAllIsOpen(t *testing.T) {
	at := netip.MustParseAddr("93.184.216.1")
	if p := New(sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, Operator{}); !p.Listed(at) || !p.Open() {
		t.Error("without a list")
	}
	if p := denying(t, nil, []string{"10.0.0.0/8"}); !p.Listed(at) {
		t.Error("with a list of addresses")
	}
	if p := denying(t, []string{"evil.example"}, nil); p.Listed(at) || !p.Open() {
		t.Error("with a list of names")
	}
}
