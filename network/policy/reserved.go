// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "net/netip"

// reserved are the addresses that no mode reaches: what is not the public internet, by the
// registries of special-purpose addresses (RFC 6890 and its successors), among it
// where clouds serve their machines' credentials.
var reserved = prefixes(
	"0.0.0.0/8",        // this network
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // carriers' own; some clouds' metadata
	"127.0.0.0/8",      // loopback
	"169.254.0.0/16",   // link-local; most clouds' metadata
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // protocol assignments; one cloud's metadata
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // 6to4 relays
	"192.168.0.0/16",   // private
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // for the future, and broadcast
	"168.63.129.16/32", // one cloud's host
	"::/127",           // unspecified and loopback
	"100::/64",         // discard
	"2001:db8::/32",    // documentation
	"3fff::/20",        // documentation
	"5f00::/16",        // segment routing
	"fc00::/7",         // private
	"fe80::/10",        // link-local
	"fec0::/10",        // site-local, once
	"ff00::/8",         // multicast
)

// carriers are ranges of IPv6 whose addresses carry one of IPv4, by the position of
// its first byte: what is reserved there is reserved here.
var carriers = []struct {
	prefix netip.Prefix
	at     int
	invert bool
}{
	{netip.MustParsePrefix("::ffff:0:0/96"), 12, false},
	{netip.MustParsePrefix("::/96"), 12, false},
	{netip.MustParsePrefix("64:ff9b::/96"), 12, false},    // NAT64
	{netip.MustParsePrefix("2002::/16"), 2, false},        // 6to4
	{netip.MustParsePrefix("2001::/32"), 12, true},        // Teredo: the client's, inverted
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12, false}, // translated
}

// local are ranges of IPv6 whose translation the operator chooses, so that their destination is
// unknown.
var local = prefixes("64:ff9b:1::/48")

// near are addresses of a machine itself, of its link and of what a cloud tells it: no mirror is there.
var near = prefixes(
	"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4",
	"100.100.100.200/32", "168.63.129.16/32", "192.0.0.0/24",
	"::/127", "fe80::/10", "fec0::/10", "ff00::/8", "fd00:ec2::/32",
)

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}

func within(a netip.Addr, ranges []netip.Prefix) bool {
	for _, r := range ranges {
		if r.Contains(a) {
			return true
		}
	}
	return false
}

// public reports whether an address is of the public internet.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if within(a, reserved) || within(a, local) {
		return false
	}
	for _, inner := range carried(a) {
		if !public(inner) {
			return false
		}
	}
	return a.IsValid()
}

// carried returns the addresses of IPv4 that one of IPv6 carries: none, one, or two, where its interface in a network that
// is named after an address of IPv4 is named after another.
func carried(a netip.Addr) (inner []netip.Addr) {
	if !a.Is6() {
		return nil
	}
	bytes := a.As16()
	for _, c := range carriers {
		if !c.prefix.Contains(a) {
			continue
		}
		of := [4]byte(bytes[c.at : c.at+4])
		if c.invert {
			for i := range of {
				of[i] = ^of[i]
			}
		}
		inner = append(inner, netip.AddrFrom4(of))
		break
	}
	// ISATAP: in any network of 64 bits, by the identifier of the interface (RFC 5214).
	if id := [4]byte(bytes[8:12]); id == [4]byte{0, 0, 0x5e, 0xfe} || id == [4]byte{2, 0, 0x5e, 0xfe} {
		inner = append(inner, netip.AddrFrom4([4]byte(bytes[12:])))
	}
	return inner
}
