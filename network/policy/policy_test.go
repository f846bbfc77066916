// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"testing"

	"sandpit.dev/sandbox"
)

func restricted(t *testing.T, o Operator, domains []string, cidrs []string, ports ...sandbox.PortRange) *Policy {
	t.Helper()
	p := sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowDomains: domains, AllowPorts: ports}
	for _, c := range cidrs {
		r, err := sandbox.ParseCIDR("allow_cidrs", c)
		if err != nil {
			t.Fatal(err)
		}
		p.AllowCIDRs = append(p.AllowCIDRs, r)
	}
	p, err := p.Normal()
	if err != nil {
		t.Fatal(err)
	}
	return New(p, o)
}

func TestName(t *testing.T) {
	p := restricted(t, Operator{}, []string{"Example.org.", "*.wild.example", "a.b.c"}, nil)
	for name, want := range map[string]Reason{
		"example.org": Allowed, "www.example.org": Domain, "org": Domain, "notexample.org": Domain, "example.org.evil.net": Domain,
		"wild.example": Domain, "x.wild.example": Allowed, "y.x.wild.example": Allowed, "xwild.example": Domain,
		"a.b.c": Allowed, "b.c": Domain, "": Domain,
		"_http._tcp.example.org": Allowed, "_http._tcp.evil.net": Domain, "_http": Domain, "data._x.example.org": Domain,
	} {
		if got := p.Name(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if got := New(sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}, Operator{}).Name("example.org"); got != Off {
		t.Errorf("off: %q", got)
	}
	if got := New(sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, Operator{}).Name("any.thing"); got != Allowed {
		t.Errorf("open: %q", got)
	}
}

func TestNothingButThePublicInternet(t *testing.T) {
	open := New(sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, Operator{})
	for addr, want := range map[string]Reason{
		"8.8.8.8": Allowed, "1.1.1.1": Allowed, "2606:4700:4700::1111": Allowed, "172.15.0.1": Allowed, "172.32.0.1": Allowed, "100.63.0.1": Allowed,
		"10.0.0.1": Private, "172.16.0.1": Private, "172.31.255.255": Private, "192.168.1.1": Private, "127.0.0.1": Private, "127.255.0.1": Private,
		"169.254.169.254": Private, "100.100.100.200": Private, "168.63.129.16": Private, "192.0.0.192": Private, "0.0.0.0": Private, "0.1.2.3": Private,
		"224.0.0.1": Private, "255.255.255.255": Private, "240.0.0.1": Private, "198.18.0.1": Private,
		"::": Private, "::1": Private, "fe80::1": Private, "fd00:ec2::254": Private, "fc00::1": Private, "ff02::1": Private, "2001:db8::1": Private,
		// An address of IPv4 in one of IPv6 is as it is.
		"::ffff:10.0.0.1": Private, "::ffff:8.8.8.8": Allowed, "::10.0.0.1": Private, "::169.254.169.254": Private,
		"64:ff9b::a00:1": Private, "64:ff9b::a9fe:a9fe": Private, "64:ff9b::808:808": Allowed, "64:ff9b:1::808:808": Private,
		"2002:a00:1::": Private, "2002:7f00:1::1": Private, "2002:808:808::1": Allowed,
		"2001:0:808:808:0:0:f5ff:fffe": Private, // Teredo of 10.0.0.1
		"::ffff:0:10.0.0.1":            Private,
		"2606:4700::5efe:10.0.0.1":     Private, "2606:4700::200:5efe:169.254.169.254": Private, "2606:4700::5efe:8.8.8.8": Allowed, // ISATAP
		"2002:808:808::5efe:10.0.0.1": Private, "2002:808:808::5efe:8.8.4.4": Allowed, // and that in a network of 6to4
	} {
		if got := open.Connection(netip.AddrPortFrom(netip.MustParseAddr(addr), 443), true); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
}

func TestConnection(t *testing.T) {
	for title, c := range map[string]struct {
		p     *Policy
		to    string
		named bool
		want  Reason
	}{
		"an address of the list":          {restricted(t, Operator{}, nil, []string{"8.8.0.0/16"}), "8.8.4.4:53", false, Allowed},
		"its mapped form":                 {restricted(t, Operator{}, nil, []string{"8.8.0.0/16"}), "[::ffff:8.8.4.4]:53", false, Allowed},
		"another":                         {restricted(t, Operator{}, nil, []string{"8.8.0.0/16"}), "8.9.4.4:53", false, Address},
		"an answer":                       {restricted(t, Operator{}, []string{"example.org"}, nil), "8.8.4.4:53", true, Allowed},
		"a port of the list":              {restricted(t, Operator{}, []string{"example.org"}, nil, sandbox.PortRange{First: 80, Last: 90}), "8.8.4.4:90", true, Allowed},
		"another port":                    {restricted(t, Operator{}, []string{"example.org"}, nil, sandbox.PortRange{First: 80, Last: 90}), "8.8.4.4:91", true, Port},
		"a private one that the list has": {restricted(t, Operator{}, nil, []string{"10.0.0.0/8"}), "10.1.1.1:53", false, Private},
		"an answer that is private":       {restricted(t, Operator{}, []string{"example.org"}, nil), "10.1.1.1:443", true, Private},
		"a private one that the operator has, too": {
			restricted(t, Operator{Allow: prefixes("10.0.0.0/8")}, nil, []string{"10.1.0.0/16"}), "10.1.1.1:53", false, Allowed},
		"a private one that only the operator has": {
			restricted(t, Operator{Allow: prefixes("10.0.0.0/8")}, nil, []string{"10.1.0.0/16"}), "10.2.1.1:53", false, Address},
		"one that the operator blocks": {
			restricted(t, Operator{Allow: prefixes("10.0.0.0/8"), Block: prefixes("10.1.1.0/24")}, nil, []string{"10.1.0.0/16"}), "10.1.1.1:53", false, Blocked},
		"one that carries what is blocked": {
			New(sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, Operator{Block: prefixes("8.8.8.8/32")}), "[64:ff9b::808:808]:53", false, Blocked},
		"off": {New(sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}, Operator{}), "8.8.8.8:53", true, Off},
	} {
		if got := c.p.Connection(netip.MustParseAddrPort(c.to), c.named); got != c.want {
			t.Errorf("%s: %q, want %q", title, got, c.want)
		}
	}
}

func TestNamesThatAnImageChose(t *testing.T) {
	p := New(sandbox.NetworkPolicy{
		Mode: sandbox.NetworkRestricted, AllowDomains: []string{"image.example", "host.example", "own.example"},
		PresetDomains: []sandbox.PresetDomain{
			{Preset: "python", Domain: "image.example", Source: sandbox.PresetFromImage},
			{Preset: "python", Domain: "host.example", Source: sandbox.PresetFromHost},
		},
	}, Operator{Allow: prefixes("10.0.0.0/8"), Block: prefixes("9.9.9.9/32")})
	for _, c := range []struct {
		name, address string
		want          Reason
	}{
		{"image.example", "93.184.216.1", Allowed},
		{"image.example", "10.0.0.5", Private},
		{"_http._tcp.image.example", "10.0.0.5", Private},
		{"image.example", "64:ff9b::a00:5", Private},
		{"image.example", "9.9.9.9", Blocked},
		{"host.example", "10.0.0.5", Allowed},
		{"host.example", "192.168.0.1", Private},
		{"own.example", "10.0.0.5", Allowed},
	} {
		if got := p.AddressOf(c.name, netip.MustParseAddr(c.address)); got != c.want {
			t.Errorf("%s for %s: %q, want %q", c.address, c.name, got, c.want)
		}
	}
}

func TestMirrorsOfTheHostMayBePrivateWhereImagesAreBuilt(t *testing.T) {
	asked := sandbox.NetworkPolicy{
		Mode: sandbox.NetworkRestricted, AllowDomains: []string{"mirror.corp", "image.example", "own.example"},
		PresetDomains: []sandbox.PresetDomain{
			{Preset: "python", Domain: "mirror.corp", Source: sandbox.PresetFromHost},
			{Preset: "python", Domain: "image.example", Source: sandbox.PresetFromImage},
		},
	}
	block := prefixes("10.9.0.0/16")
	p, plain := New(asked, Operator{Mirrors: true, Block: block}), New(asked, Operator{Block: block})
	for _, c := range []struct {
		name, address string
		want          Reason
	}{
		{"mirror.corp", "10.0.0.5", Allowed},
		{"mirror.corp", "fd12::5", Allowed},
		{"mirror.corp", "93.184.216.1", Allowed},
		{"mirror.corp", "10.9.0.5", Blocked},
		{"mirror.corp", "127.0.0.1", Private},
		{"mirror.corp", "::1", Private},
		{"mirror.corp", "169.254.169.254", Private},
		{"mirror.corp", "64:ff9b::a9fe:a9fe", Private},
		{"mirror.corp", "100.100.100.200", Private},
		{"mirror.corp", "fd00:ec2::254", Private},
		{"mirror.corp", "224.0.0.1", Private},
		{"image.example", "10.0.0.5", Private},
		{"own.example", "10.0.0.5", Private},
	} {
		a := netip.MustParseAddr(c.address)
		if got := p.AddressOf(c.name, a); got != c.want {
			t.Errorf("%s for %s: %q, want %q", c.address, c.name, got, c.want)
		}
		if got := plain.AddressOf(c.name, a); got == Allowed && !public(a) {
			t.Errorf("%s for %s where no image is built: allowed", c.address, c.name)
		}
		at := netip.AddrPortFrom(a, 443)
		if got := p.Connection(at, p.AddressOf(c.name, a) == Allowed); (got == Allowed) != (c.want == Allowed) {
			t.Errorf("a connection to %s for %s: %q", c.address, c.name, got)
		}
		if got := p.Connection(at, false); got == Allowed {
			t.Errorf("a connection to %s without a name: allowed", c.address)
		}
	}
	if p.Addresses("mirror.corp") != Allowed || plain.Addresses("mirror.corp") != Private || p.Addresses("other.corp") != Private {
		t.Error("special names")
	}
}
