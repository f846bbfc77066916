// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sandpit.dev/fault"
)

// NetworkMode says how far a sandbox's network reaches.
type NetworkMode string

const (
	NetworkOff        NetworkMode = "off"        // its own loopback, and nothing else
	NetworkRestricted NetworkMode = "restricted" // what its lists allow
	NetworkOpen       NetworkMode = "open"       // the public internet
)

// NetworkPolicy is what a sandbox may reach. Private ranges, link-local and metadata addresses,
// the host and other sandboxes are out of reach in every mode, unless the server's operator named
// them.
type NetworkPolicy struct {
	Mode NetworkMode `json:"mode"`
	// AllowDomains are names, or "*.name" for all names below one; see CheckDomain.
	AllowDomains []string `json:"allow_domains,omitempty"`
	// AllowCIDRs are addresses that may be reached without a name.
	AllowCIDRs []netip.Prefix `json:"allow_cidrs,omitempty"`
	// AllowPorts bounds the ports of both; empty: all.
	AllowPorts []PortRange `json:"allow_ports,omitempty"`
	// Learn lets through what the lists would refuse, as in mode open, and
	// notes it: from that a policy can be proposed.
	Learn bool `json:"learn,omitempty"`
	// DenyDomains are names as in AllowDomains that are not reached in mode open, and DenyCIDRs addresses.
	// What AllowDomains has is reached all the same, at whatever address.
	DenyDomains []string       `json:"deny_domains,omitempty"`
	DenyCIDRs   []netip.Prefix `json:"deny_cidrs,omitempty"`
	// Headers are set in requests by HTTP, and by HTTP over TLS, to hosts.
	Headers HostHeaders `json:"headers,omitempty"`
	// AllowPresets are names of lists that the server keeps. What they stood for when the policy
	// was set is among AllowDomains.
	AllowPresets []string `json:"allow_presets,omitempty"`
	// PresetDomains says which of AllowDomains are there for a preset alone, and who says so. The
	// server fills it in.
	PresetDomains []PresetDomain `json:"preset_domains,omitempty"`
}

// PresetDomain is a name that a preset stands for.
type PresetDomain struct {
	Preset string `json:"preset"`
	Domain string `json:"domain"`
	Source string `json:"source"` // one of the constants
}

// Sources of what a preset stands for.
const (
	PresetFromImage    = "image"     // a package tool's settings in the sandbox's image, which its author chose
	PresetFromHost     = "host"      // a package tool's settings on the server's host
	PresetFromOperator = "operator"  // the server's configuration
	PresetPublished    = "published" // the owner of a service
)

// PortRange is the ports from First to Last, both included.
type PortRange struct {
	First uint16 `json:"first"`
	Last  uint16 `json:"last"`
}

// Bounds of a policy's lists.
const (
	MaxAllowDomains = 256
	MaxAllowCIDRs   = 64
	MaxAllowPorts   = 32
	MaxAllowPresets = 16
	MaxDenyDomains  = 256
	MaxDenyCIDRs    = 64
)

// Equal reports whether two policies say the same in the same order.
func (p NetworkPolicy) Equal(q NetworkPolicy) bool {
	return p.Mode == q.Mode && p.Learn == q.Learn && slices.Equal(p.AllowDomains, q.AllowDomains) &&
		slices.Equal(p.AllowCIDRs, q.AllowCIDRs) && slices.Equal(p.AllowPorts, q.AllowPorts) &&
		slices.Equal(p.DenyDomains, q.DenyDomains) && slices.Equal(p.DenyCIDRs, q.DenyCIDRs) && p.Headers.Equal(q.Headers) &&
		slices.Equal(p.AllowPresets, q.AllowPresets) && slices.Equal(p.PresetDomains, q.PresetDomains)
}

// Names returns the names of all its lists, and its headers: the texts that callers choose.
func (p NetworkPolicy) Names() []string {
	return slices.Concat(p.AllowDomains, p.DenyDomains, p.Headers.texts())
}

// Denies reports whether the policy has a list of what is not reached.
func (p NetworkPolicy) Denies() bool { return len(p.DenyDomains)+len(p.DenyCIDRs) > 0 }

// Normal returns the policy with its names in the form that they are compared in,
// or fault.Invalid with every field that is wrong.
func (p NetworkPolicy) Normal() (NetworkPolicy, error) {
	var bad []fault.Field
	add := func(err error) {
		if err != nil {
			bad = append(bad, fault.As(err).Fields...)
		}
	}
	switch p.Mode {
	case NetworkOff, NetworkRestricted, NetworkOpen:
	case "":
		p.Mode = NetworkOff
	default:
		add(fault.InvalidField("network.mode", "%q is not a valid mode; use off, restricted or open", Clip(string(p.Mode), 40)))
	}
	switch allows := len(p.AllowDomains)+len(p.AllowPresets) > 0; {
	case p.Mode != NetworkOpen && p.Denies():
		add(fault.InvalidField("network", "has lists of what is denied, that mean nothing in mode %s; they go with open", p.Mode))
	case p.Mode == NetworkOpen && p.Denies() && (len(p.AllowCIDRs) > 0 || p.Learn):
		add(fault.InvalidField("network", "has allow_cidrs, or learn, that mean nothing in mode open; beside what is denied go names, by allow_domains or allow_presets"))
	case p.Mode != NetworkRestricted && !p.Denies() && (allows || len(p.AllowCIDRs) > 0 || p.Learn):
		add(fault.InvalidField("network", "has lists, or learn, that mean nothing in mode %s; they go with restricted", p.Mode))
	}
	for _, l := range []struct {
		field     string
		have, may int
	}{
		{"network.allow_domains", len(p.AllowDomains), MaxAllowDomains},
		{"network.allow_cidrs", len(p.AllowCIDRs), MaxAllowCIDRs},
		{"network.allow_ports", len(p.AllowPorts), MaxAllowPorts},
		{"network.allow_presets", len(p.AllowPresets), MaxAllowPresets},
		{"network.deny_domains", len(p.DenyDomains), MaxDenyDomains},
		{"network.deny_cidrs", len(p.DenyCIDRs), MaxDenyCIDRs},
	} {
		if l.have > l.may {
			add(fault.InvalidField(l.field, "has %d entries, and may have %d", l.have, l.may))
		}
	}
	if len(bad) == 0 {
		domains := func(field string, list []string) []string {
			list = slices.Clone(list)
			for i, d := range list {
				n, err := CheckDomain(field, d)
				add(err)
				list[i] = n
			}
			return list
		}
		ranges := func(field string, list []netip.Prefix) []netip.Prefix {
			list = slices.Clone(list)
			for i, c := range list {
				if !c.IsValid() {
					add(fault.InvalidField(field, "entry %d is not a valid range of addresses", i+1))
				}
				list[i] = c.Masked()
			}
			return list
		}
		p.AllowDomains, p.DenyDomains = domains("network.allow_domains", p.AllowDomains), domains("network.deny_domains", p.DenyDomains)
		p.AllowCIDRs, p.DenyCIDRs = ranges("network.allow_cidrs", p.AllowCIDRs), ranges("network.deny_cidrs", p.DenyCIDRs)
		if p.Mode == NetworkOff && len(p.Headers) > 0 {
			add(fault.InvalidField("network.headers", "means nothing in mode off; it goes with restricted or open"))
		}
		p.Headers = p.Headers.normal("network.headers", add)
		for _, r := range p.AllowPorts {
			if r.First == 0 || r.Last < r.First {
				add(fault.InvalidField("network.allow_ports", "%d-%d is not a valid range of ports", r.First, r.Last))
			}
		}
	}
	if len(bad) > 0 {
		return p, &fault.Error{Code: fault.Invalid, Message: bad[0].Name + ": " + bad[0].Message, Fields: bad}
	}
	return p, nil
}

// ParseCIDR reads a range of addresses, or a single one.
func ParseCIDR(field, text string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96).Masked(), nil
	} else if err == nil && !p.Addr().Is4In6() {
		return p.Masked(), nil
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.Prefix{}, fault.InvalidField(field, "%q is neither an address nor a range of addresses such as 192.0.2.0/24", Clip(text, 60))
}

// ParsePorts reads "443" or "8000-8100".
func ParsePorts(field, text string) (PortRange, error) {
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		last = first
	}
	a, errA := strconv.ParseUint(first, 10, 16)
	b, errB := strconv.ParseUint(last, 10, 16)
	if errA != nil || errB != nil || a == 0 || b < a {
		return PortRange{}, fault.InvalidField(field, "%q is neither a port, 1 to 65535, nor a range of ports such as 8000-8100", Clip(text, 40))
	}
	return PortRange{uint16(a), uint16(b)}, nil
}

// CheckDomain returns a name in the form that names are compared in: lower-case ASCII without a dot
// at its end. It may begin with "*.", for all names below what follows.
func CheckDomain(field, name string) (string, error) {
	rest, wild := strings.CutPrefix(name, "*.")
	normal, ok := NormalName(rest)
	if !ok || !strings.Contains(normal, ".") && wild {
		return "", fault.InvalidField(field, "%q is not a valid domain name; write example.org, or *.example.org for all names below it, and other scripts as xn--…", Clip(name, 80))
	}
	if _, err := netip.ParseAddr(normal); err == nil {
		return "", fault.InvalidField(field, "%q is an address; addresses go into allow_cidrs, or deny_cidrs", Clip(name, 80))
	}
	if wild {
		normal = "*." + normal
	}
	return normal, nil
}

// NormalName returns a domain name in the form that names are compared in, and whether
// it is one. Other scripts than ASCII are written as "xn--…".
func NormalName(name string) (string, bool) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "" || len(name) > 253 {
		return "", false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return "", false
		}
		for i := range len(label) {
			// Names of services have underscores, which no host's name has.
			if c := label[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return "", false
			}
		}
	}
	return name, true
}
