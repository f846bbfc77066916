// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "net/netip"

// Public reports whether an address is of the public internet, also by the address of IPv4 that it may carry.
func Public(a netip.Addr) bool { return a.IsValid() && public(a) }
