// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "net/netip"

// Public reports whether an address is of the public internet, also by the address of IPv4 that it may carry.
func Public(a netip.Addr) bool { return a.IsValid() && public(a) }

// Carried returns the addresses of IPv4 that one of IPv6 carries (mapped, NAT64, 6to4, Teredo, ISATAP).
func Carried(a netip.Addr) []netip.Addr { return carried(a.WithZone("")) }
