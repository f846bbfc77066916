// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/netip"
	"slices"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Modes of an egress policy.
const (
	egressInherit      = "inherit"
	egressBlocked      = "blocked"
	egressAllowlist    = "allowlist"
	egressUnrestricted = "unrestricted"
)

// maxDestinations is how many names, and how many addresses, the SDK's model of a policy takes.
const maxDestinations = 128

// egressPolicy is what a sandbox may reach. Only an allowlist has destinations, and it has some.
type egressPolicy struct {
	Mode    string   `json:"mode"`
	Domains []string `json:"allowed_domains"`
	CIDRs   []string `json:"allowed_cidrs"`
}

// egressAsked are the fields of requests about it.
type egressAsked struct {
	Enabled *bool         `json:"network_enabled"` // what the gateway had before policies
	Policy  *egressPolicy `json:"requested_egress_policy"`
}

// asksDefault reports whether the server's own policy is asked for.
func (b *egressAsked) asksDefault() bool { return b.Policy != nil && b.Policy.Mode == egressInherit }

// policy returns the policy that is asked for; nil: none, or the server's own.
func (b *egressAsked) policy() (*sandbox.NetworkPolicy, error) {
	const field = "requested_egress_policy"
	switch {
	case b.Policy != nil && b.Enabled != nil:
		return nil, fault.InvalidField("network_enabled", "cannot be combined with %s; give one of them", field)
	case b.Enabled != nil && *b.Enabled:
		return &sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, nil
	case b.Enabled != nil:
		return &sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}, nil
	case b.Policy == nil:
		return nil, nil
	}
	p := b.Policy
	if n := len(p.Domains) + len(p.CIDRs); (n > 0) != (p.Mode == egressAllowlist) {
		return nil, fault.InvalidField(field, "has %d destinations with mode %q; an allowlist has some, and no other mode has", n, sandbox.Clip(p.Mode, 40))
	}
	switch p.Mode {
	case egressInherit:
		return nil, nil
	case egressBlocked:
		return &sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}, nil
	case egressUnrestricted:
		return &sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, nil
	case egressAllowlist:
	default:
		return nil, fault.InvalidField(field+".mode", "%q is not valid; use inherit, blocked, allowlist or unrestricted", sandbox.Clip(p.Mode, 40))
	}
	if len(p.Domains) > maxDestinations || len(p.CIDRs) > maxDestinations {
		return nil, fault.InvalidField(field, "has %d domains and %d addresses, more than %d of one", len(p.Domains), len(p.CIDRs), maxDestinations)
	}
	out := &sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowDomains: slices.Clone(p.Domains)}
	var bad []fault.Field
	for _, text := range p.CIDRs {
		cidr, err := sandbox.ParseCIDR(field+".allowed_cidrs", text)
		if err != nil {
			bad = append(bad, fault.As(err).Fields...)
			continue
		}
		out.AllowCIDRs = append(out.AllowCIDRs, cidr)
	}
	if len(bad) > 0 {
		return nil, fault.InvalidFields(bad...)
	}
	return out, nil
}

// egressShape are the fields of a sandbox about it.
type egressShape struct {
	Enabled     bool          `json:"network_enabled"`
	Requested   *egressPolicy `json:"requested_egress_policy"` // null where the SDK's model cannot hold it
	Effective   *egressPolicy `json:"effective_egress_policy"` // likewise
	Source      string        `json:"egress_policy_source"`    // gateway_default or sandbox_request
	Enforcement string        `json:"egress_enforcement_status"`
}

// Whether a policy holds: it does from before a sandbox's first program on, for as long as it runs.
const (
	egressEnforced = "enforced"
	egressPending  = "pending"
)

func (a *API) egressOf(s *sandbox.Sandbox) egressShape {
	inForce := a.Networks.InForce(s.Network)
	out := egressShape{
		Enabled: inForce.Mode != sandbox.NetworkOff, Requested: policyOf(s.Network), Effective: policyOf(inForce), Source: "sandbox_request", Enforcement: egressPending,
	}
	if d := a.Networks.DefaultNetwork(); d.Mode == s.Network.Mode && slices.Equal(d.AllowDomains, s.Network.AllowDomains) && slices.Equal(d.AllowCIDRs, s.Network.AllowCIDRs) {
		out.Requested, out.Source = &egressPolicy{egressInherit, []string{}, []string{}}, "gateway_default"
	}
	if s.State == sandbox.Running || s.State == sandbox.Paused {
		out.Enforcement = egressEnforced
	}
	return out
}

// policyOf returns a policy in the SDK's terms; nil: its model has no place for all of it, such as for names that are denied.
func policyOf(p sandbox.NetworkPolicy) *egressPolicy {
	out := &egressPolicy{Mode: egressBlocked, Domains: []string{}, CIDRs: []string{}}
	switch p.Mode {
	case sandbox.NetworkOff:
	case sandbox.NetworkOpen:
		out.Mode = egressUnrestricted
		if len(p.DenyDomains)+len(p.DenyCIDRs) > 0 {
			return nil
		}
	case sandbox.NetworkRestricted:
		if p.Learn || len(p.AllowDomains) > maxDestinations || len(p.AllowCIDRs) > maxDestinations {
			return nil
		}
		if len(p.AllowDomains)+len(p.AllowCIDRs) > 0 {
			out.Mode, out.Domains, out.CIDRs = egressAllowlist, append(out.Domains, p.AllowDomains...), textsOf(p.AllowCIDRs)
		}
	}
	return out
}

func textsOf(all []netip.Prefix) []string {
	out := make([]string, len(all))
	for i, p := range all {
		out[i] = p.String()
	}
	return out
}
