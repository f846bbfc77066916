// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// special are names that the public DNS does not have, or has for what is nearest (RFC 6761,
// 6762, 7686, 8375 and 9476): a resolver that answers for one reveals its own network.
var special = map[string]bool{
	"alt": true, "corp": true, "home": true, "home.arpa": true, "internal": true, "intranet": true, "invalid": true, "lan": true, "local": true,
	"localdomain": true, "localhost": true, "mail": true, "onion": true, "private": true, "test": true,
}

// Records reports whether records of a name other than addresses may be returned. Those of the
// server's own network may not, whatever the sandbox's list says: unlike an address, they do not
// show where they are from. Those of reverse names may not either, public or private.
func (p *Policy) Records(name string) Reason {
	if isSpecial(name) || below(name, "arpa") {
		return Private
	}
	for _, domain := range p.operator.Search {
		if below(name, domain) {
			return Private
		}
	}
	return Allowed
}

// Addresses reports whether the addresses of a name may be asked for. Each of them is held to
// Outside; names of the server's own network have some that pass only if the operator allows ranges of it.
func (p *Policy) Addresses(name string) Reason {
	if len(p.operator.Allow) == 0 && isSpecial(name) && !p.mirrors[name] {
		return Private
	}
	return Allowed
}

func isSpecial(name string) bool {
	if !strings.Contains(host(name), ".") {
		return true
	}
	for rest, more := name, true; more; _, rest, more = strings.Cut(rest, ".") {
		if special[rest] {
			return true
		}
	}
	return false
}

func below(name, domain string) bool {
	return name == domain || strings.HasSuffix(name, "."+domain)
}
