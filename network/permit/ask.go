// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"slices"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

// Ask is what an operator lets be asked for. Asking grants nothing; it decides what a person is asked.
type Ask string

// What may be asked for.
const (
	AskNothing Ask = "nothing"
	AskPresets Ask = "presets"
	AskNames   Ask = "names" // and presets
)

// maxAsked bounds what one request names: a person has to read it.
const maxAsked = 16

// CheckAsk refuses what is no such setting; "" is names.
func CheckAsk(field, text string) (Ask, error) {
	switch a := Ask(text); a {
	case "":
		return AskNames, nil
	case AskNothing, AskPresets, AskNames:
		return a, nil
	}
	return "", fault.InvalidField(field, "%q is not valid; use nothing, presets or names", sandbox.Clip(text, 40))
}

// Asked returns presets and exact names that a caller asks for as a policy of these alone, or why they
// may not be asked for here.
func (r Rules) Asked(presets, domains []string) (sandbox.NetworkPolicy, error) {
	none := sandbox.NetworkPolicy{}
	n := len(presets) + len(domains)
	switch {
	case r.Ask == AskNothing:
		return none, fault.New(fault.Denied, "this server's operator lets no network be asked for (network.ask)").WithRemedy("work without, or ask whoever runs this server")
	case r.Ask == AskPresets && len(domains) > 0:
		return none, fault.New(fault.Denied, "this server's operator lets presets alone be asked for (network.ask), not %s", sandbox.Clip(domains[0], 80)).
			WithRemedy("ask for some of %s", strings.Join(r.Presets.Names(), ", "))
	case n == 0:
		return none, fault.InvalidField("allow", "is empty; name presets (%s) or hosts", strings.Join(r.Presets.Names(), ", "))
	case n > maxAsked:
		return none, fault.InvalidField("allow", "has %d entries; %d are the most of one request", n, maxAsked)
	}
	for _, d := range domains {
		if strings.HasPrefix(d, "*") {
			return none, fault.InvalidField("allow", "%q is not an exact name, which alone can be asked for", sandbox.Clip(d, 80)).WithRemedy("name each host")
		}
	}
	return r.Check(&sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowPresets: presets, AllowDomains: domains})
}

// Covers reports whether a policy allows all that another, which is resolved, names.
func Covers(p, asked sandbox.NetworkPolicy) bool {
	return p.Mode != sandbox.NetworkOff && p.Mode != "" && !slices.ContainsFunc(asked.AllowDomains, func(d string) bool { return !allows(p, d) })
}

// ByRule reports whether the operator allows every sandbox what is asked for: by the default network,
// or by the curated names. A name that only an image says counts for who asks for its preset alone.
func (r Rules) ByRule(asked sandbox.NetworkPolicy, all []Preset) (bool, error) {
	rule := r.Bounded(r.Default)
	if rule.Mode == sandbox.NetworkOpen {
		return true, nil
	}
	if slices.ContainsFunc(asked.AllowPresets, func(n string) bool { return !slices.Contains(rule.AllowPresets, n) }) {
		return false, nil
	}
	rule, err := r.JoinDefault(rule, all)
	if err != nil {
		return false, err
	}
	lists := sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowDomains: slices.Clone(r.Curated)}
	for _, d := range rule.AllowDomains {
		if !slices.Contains(rule.PresetDomains, sandbox.PresetDomain{Preset: presetOf(rule, d), Domain: d, Source: sandbox.PresetFromImage}) {
			lists.AllowDomains = append(lists.AllowDomains, d)
		}
	}
	decide := policy.New(lists, policy.Operator{})
	for _, d := range asked.AllowDomains {
		if presetOf(asked, d) == "" && decide.Name(d) != policy.Allowed {
			return false, nil
		}
	}
	return true, nil
}

// presetOf returns the preset for which a policy has a name; "" if it has it for itself.
func presetOf(p sandbox.NetworkPolicy, domain string) string {
	for _, d := range p.PresetDomains {
		if d.Domain == domain {
			return d.Preset
		}
	}
	return ""
}

// Widen adds presets and names to a policy, whose own presets are resolved anew.
func Widen(p sandbox.NetworkPolicy, presets, domains []string) sandbox.NetworkPolicy {
	switch {
	case p.Mode == sandbox.NetworkOpen && !p.Denies():
		return p
	case p.Mode == sandbox.NetworkRestricted, p.Mode == sandbox.NetworkOpen:
	default:
		p = sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted}
	}
	own := slices.DeleteFunc(slices.Clone(p.AllowDomains), func(d string) bool { return presetOf(p, d) != "" })
	p.AllowDomains, p.AllowPresets, p.PresetDomains = added(own, domains), added(slices.Clone(p.AllowPresets), presets), nil
	return p
}

// Exceeds returns something that a policy allows and neither of two others does: the one that was in
// force, and one of names that somebody was shown. It returns "" if there is nothing.
func Exceeds(p, was, shown sandbox.NetworkPolicy) string {
	if was.Mode == sandbox.NetworkOpen {
		return exceedsOpen(p, was, shown)
	}
	if was.Mode != sandbox.NetworkRestricted {
		was = sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowPorts: p.AllowPorts}
	}
	switch {
	case p.Mode == sandbox.NetworkOpen || p.Learn && !was.Learn:
		return "every host"
	case !slices.Equal(p.AllowPorts, was.AllowPorts):
		return "other ports"
	}
	for _, c := range p.AllowCIDRs {
		if !slices.Contains(was.AllowCIDRs, c) {
			return c.String()
		}
	}
	for _, d := range p.AllowDomains {
		// A name that an image alone says reaches less than the same name of somebody else's.
		image := fromImage(p, d)
		if !slices.ContainsFunc([]sandbox.NetworkPolicy{was, shown}, func(o sandbox.NetworkPolicy) bool {
			if !image {
				o.AllowDomains = slices.DeleteFunc(slices.Clone(o.AllowDomains), func(d string) bool { return fromImage(o, d) })
			}
			return allows(o, d)
		}) {
			return d
		}
	}
	return ""
}

// exceedsOpen is Exceeds where all could be reached but what was denied.
func exceedsOpen(p, was, shown sandbox.NetworkPolicy) string {
	for _, d := range was.DenyDomains {
		if p.Mode == sandbox.NetworkOpen && !slices.Contains(p.DenyDomains, d) {
			return d
		}
	}
	for _, c := range was.DenyCIDRs {
		if p.Mode == sandbox.NetworkOpen && !slices.Contains(p.DenyCIDRs, c) || slices.ContainsFunc(p.AllowCIDRs, c.Overlaps) {
			return c.String()
		}
	}
	for _, d := range p.AllowDomains {
		named := slices.Contains(was.AllowDomains, d) || len(was.DenyCIDRs) == 0 && allows(was, d)
		if was.Denies() && !named && !allows(shown, d) {
			return d
		}
	}
	return ""
}

// fromImage reports whether a policy has a name for what an image says alone.
func fromImage(p sandbox.NetworkPolicy, domain string) bool {
	return slices.ContainsFunc(p.PresetDomains, func(d sandbox.PresetDomain) bool {
		return d.Domain == domain && d.Source == sandbox.PresetFromImage
	})
}

func added(to, more []string) []string {
	for _, s := range more {
		if !slices.Contains(to, s) {
			to = append(to, s)
		}
	}
	return to
}
