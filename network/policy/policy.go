// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"net/netip"
	"strings"

	"sandpit.dev/sandbox"
)

// Operator is what the server's operator says for all sandboxes.
type Operator struct {
	// Allow are ranges beyond the public internet that sandboxes may reach, as far as
	// their own policy allows.
	Allow []netip.Prefix
	// Block are ranges that none reaches. It goes over Allow.
	Block []netip.Prefix
	// Mirrors says that names which the host's own package tools are set to may stand for private
	// addresses: it holds of sandboxes in which the server builds images.
	Mirrors bool
	// Search are the domains that the server's host completes names with: names below them
	// may be of its own network.
	Search []string
}

// Policy decides for one sandbox. It is never changed, and safe for concurrent use.
type Policy struct {
	p        sandbox.NetworkPolicy
	operator Operator
	allow    list
	deny     list
	public   map[string]bool // names that an image chose, whose addresses are of the public internet or none
	mirrors  map[string]bool // names whose addresses may be private, see Operator.Mirrors
}

// list is a list of names.
type list struct {
	names map[string]bool
	below map[string]bool // names below one of these
}

func newList(domains []string) list {
	l := list{make(map[string]bool), make(map[string]bool)}
	for _, d := range domains {
		if rest, wild := strings.CutPrefix(d, "*."); wild {
			l.below[rest] = true
		} else {
			l.names[d] = true
		}
	}
	return l
}

// has reports whether a name is on the list, itself or below a wildcard.
func (l list) has(name string) bool { return l.names[name] || l.wildcard(name) != "" }

// wildcard is the name whose wildcard is the nearest to have another name; "" where none does.
func (l list) wildcard(name string) string {
	for {
		_, up, more := strings.Cut(name, ".")
		if !more || l.below[up] {
			return up
		}
		name = up
	}
}

// Reason is why something was refused; "" if it was not.
type Reason string

const (
	Allowed      Reason = ""
	Off          Reason = "off"      // the sandbox has no network
	Domain       Reason = "domain"   // the name is not on the list
	Address      Reason = "address"  // the address is not on the list, nor was it given for a name that is
	Port         Reason = "port"     // the port is not on the list
	Private      Reason = "private"  // the address is not of the public internet
	Blocked      Reason = "blocked"  // the operator blocks the address
	Denied       Reason = "denied"   // the name or the address is on the list of what is denied
	Disagreement Reason = "name"     // the program named another host than the one that it asked for
	Protocol     Reason = "protocol" // no way to see who is meant
	Limit        Reason = "limit"    // the sandbox has too many connections

	// Of connections to hosts that a secret is bound to.
	Plaintext   Reason = "plaintext"   // it went on without the secret, which is never sent in the clear
	Untrusted   Reason = "trust"       // the program does not take the certificate that it is shown
	Certificate Reason = "certificate" // the host's certificate does not verify
	Encoding    Reason = "encoding"    // the answer could not be looked through
	Names       Reason = "names"       // it asked for too many names of one domain, or too often
	Host        Reason = "host"        // the address is the server's own host's
)

// New makes the policy; p is normal, see [sandbox.NetworkPolicy.Normal].
func New(p sandbox.NetworkPolicy, o Operator) *Policy {
	out := &Policy{p: p, operator: o, allow: newList(p.AllowDomains), deny: newList(p.DenyDomains), public: make(map[string]bool), mirrors: make(map[string]bool)}
	for _, d := range p.PresetDomains {
		switch {
		case d.Source == sandbox.PresetFromImage:
			out.public[d.Domain] = true
		case d.Source == sandbox.PresetFromHost && o.Mirrors:
			out.mirrors[d.Domain] = true
		}
	}
	return out
}

// Of is what the policy was made of.
func (p *Policy) Of() sandbox.NetworkPolicy { return p.p }

// Name reports whether a name, in its normal form, may be asked for and connected to.
// The name of a service, such as _http._tcp.example.org, is as that of its host.
func (p *Policy) Name(name string) Reason {
	name = host(name)
	switch listed := p.allow.has(name); {
	case p.p.Mode == sandbox.NetworkOpen && !listed && p.deny.has(name):
		return Denied
	case p.p.Mode == sandbox.NetworkOpen, p.p.Mode == sandbox.NetworkRestricted && listed:
		return Allowed
	case p.p.Mode != sandbox.NetworkRestricted:
		return Off
	}
	return Domain
}

// host takes the labels of a service off a name.
func host(name string) string {
	for strings.HasPrefix(name, "_") {
		_, rest, more := strings.Cut(name, ".")
		if !more {
			break
		}
		name = rest
	}
	return name
}

// Below returns the entry of the list under which the client can make up an allowed name: a
// wildcard, or a name that has the labels of a service before it here. It is "" for names that
// the list has themselves, and without a list.
func (p *Policy) Below(name string) string {
	if p.p.Mode != sandbox.NetworkRestricted || p.allow.names[name] {
		return ""
	}
	at := host(name)
	if p.allow.names[at] {
		return at
	}
	if up := p.allow.wildcard(at); up != "" {
		return "*." + up
	}
	return ""
}

// Outside reports whether an address may be connected to by anybody at all: it is of
// the public internet, or the operator named it. A name's answers are held to it
// too, or a name could stand for a neighbour.
func (p *Policy) Outside(a netip.Addr) Reason {
	a = a.Unmap()
	switch {
	case within(a, p.operator.Block):
		return Blocked
	case blocksCarried(a, p.operator.Block):
		return Blocked
	case within(a, p.operator.Allow), public(a):
		return Allowed
	}
	return Private
}

// AddressOf reports whether an address may be told, and connected to, for a name that may be asked
// for. It is Outside, but that the ranges which the operator allows do not count for names that an
// image chose: its author is not one who may say that a sandbox reaches them. Mirrors of the host's
// may have private addresses where the operator's word is so.
func (p *Policy) AddressOf(name string, a netip.Addr) Reason {
	if reason := p.Outside(a); reason == Private && p.mirrors[host(name)] && elsewhere(a) {
		return Allowed
	} else if reason != Allowed {
		return reason
	}
	if p.public[host(name)] && !public(a) {
		return Private
	}
	if p.denies(a) && !p.allow.has(host(name)) {
		return Denied
	}
	return Allowed
}

// denies reports whether an address is on the list of what is denied, or carries one that is.
func (p *Policy) denies(a netip.Addr) bool {
	return within(a.Unmap(), p.p.DenyCIDRs) || blocksCarried(a, p.p.DenyCIDRs)
}

// elsewhere reports whether an address may be another machine's: it is neither this one's own nor
// of the link, where clouds tell machines what they are.
func elsewhere(a netip.Addr) bool {
	a = a.Unmap()
	for _, inner := range carried(a) {
		if !elsewhere(inner) {
			return false
		}
	}
	return a.IsValid() && a.Zone() == "" && !within(a, near)
}

// blocksCarried reports whether a carries an address that is blocked.
func blocksCarried(a netip.Addr, blocked []netip.Prefix) bool {
	for _, inner := range carried(a) {
		if within(inner, blocked) {
			return true
		}
	}
	return false
}

// Connection reports whether an address may be connected to. named says that a name
// was asked for that may be, and the address was the answer, which AddressOf allows.
func (p *Policy) Connection(to netip.AddrPort, named bool) Reason {
	switch {
	case p.p.Mode != sandbox.NetworkOpen && p.p.Mode != sandbox.NetworkRestricted:
		return Off
	case p.Outside(to.Addr()) != Allowed && !(named && len(p.mirrors) > 0 && p.Outside(to.Addr()) == Private):
		return p.Outside(to.Addr())
	case !named && p.denies(to.Addr()):
		return Denied
	case !p.port(to.Port()):
		return Port
	case p.p.Mode == sandbox.NetworkOpen, named, p.Listed(to.Addr()):
		return Allowed
	}
	return Address
}

// Listed reports whether the policy names the address itself, or nothing else does: then it does
// not matter which name a program has for it.
func (p *Policy) Listed(a netip.Addr) bool {
	return p.p.Mode == sandbox.NetworkOpen && len(p.p.DenyDomains) == 0 || within(a.Unmap(), p.p.AllowCIDRs)
}

// Open reports whether all may be reached that is not denied: who names no host is let through.
func (p *Policy) Open() bool { return p.p.Mode == sandbox.NetworkOpen }

// Learning reports whether what is refused is let through, and noted.
func (p *Policy) Learning() bool { return p.p.Learn }

// Learnable reports whether a refusal is one that the policy could take back: it is not
// the operator's.
func (r Reason) Learnable() bool {
	return r == Domain || r == Address || r == Port || r == Disagreement
}

func (p *Policy) port(n uint16) bool {
	if len(p.p.AllowPorts) == 0 {
		return true
	}
	for _, r := range p.p.AllowPorts {
		if r.First <= n && n <= r.Last {
			return true
		}
	}
	return false
}

// Explain says in a line for people why what was refused, and what to do about it.
func (r Reason) Explain(what string) string {
	switch r {
	case Allowed:
		return what + " may be reached"
	case Off:
		return fmt.Sprintf("%s cannot be reached: this sandbox has no network", what)
	case Domain:
		return fmt.Sprintf("%s is not among the names that this sandbox may reach; add it to allow_domains", what)
	case Address:
		return fmt.Sprintf("%s is neither among the addresses that this sandbox may reach nor was it given for a name that it may; add it to allow_cidrs, or use a name", what)
	case Port:
		return fmt.Sprintf("the port of %s is not among those that this sandbox may reach; add it to allow_ports", what)
	case Private:
		return fmt.Sprintf("%s is not of the public internet; only the server's operator can allow it", what)
	case Blocked:
		return fmt.Sprintf("%s is blocked by the server's operator", what)
	case Denied:
		return fmt.Sprintf("%s is denied to this sandbox; take it off deny_domains or deny_cidrs, or allow its name in allow_domains", what)
	case Disagreement:
		return fmt.Sprintf("the connection was for another host than it named, %s, which this sandbox may not reach", what)
	case Protocol:
		return fmt.Sprintf("%s was asked for by a protocol that the network does not pass on", what)
	case Limit:
		return fmt.Sprintf("%s was refused: this sandbox has too many connections open", what)
	case Names:
		return fmt.Sprintf("%s: this sandbox asks for too many different names there, or too often; wait some minutes, or have the server's operator raise network.names", what)
	case Host:
		return fmt.Sprintf("%s is an address of the server's own host; only the server's operator can allow it, by itself", what)
	case Plaintext:
		return fmt.Sprintf("a secret is bound to %s, and was not sent, since the connection is not TLS; use https", what)
	case Untrusted:
		return fmt.Sprintf("a program ended its TLS with %s, to which a secret is bound: it does not take the certificate of the sandbox's own authority; "+
			"let it use the system's certificates (SSL_CERT_FILE, or a setting of its own), and start it again if it ran before the secret was bound", what)
	case Certificate:
		return fmt.Sprintf("the certificate of %s does not verify, so no secret and no request was sent there", what)
	case Encoding:
		return fmt.Sprintf("%s answered in an encoding in which secrets cannot be looked for, so the answer was withheld", what)
	}
	return fmt.Sprintf("%s was refused (%s)", what, string(r))
}
