// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"fmt"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/sandbox"
)

// Policy is a policy on the wire.
func Policy(p sandbox.NetworkPolicy) v1.NetworkPolicy {
	out := v1.NetworkPolicy{Mode: string(p.Mode), AllowDomains: p.AllowDomains, AllowPresets: p.AllowPresets, PresetDomains: PresetDomains(p.PresetDomains), DenyDomains: p.DenyDomains, Headers: p.Headers, Learn: p.Learn}
	if out.Mode == "" {
		out.Mode = string(sandbox.NetworkOff)
	}
	for _, c := range p.AllowCIDRs {
		out.AllowCIDRs = append(out.AllowCIDRs, c.String())
	}
	for _, c := range p.DenyCIDRs {
		out.DenyCIDRs = append(out.DenyCIDRs, c.String())
	}
	for _, r := range p.AllowPorts {
		text := fmt.Sprint(r.First)
		if r.Last != r.First {
			text += fmt.Sprint("-", r.Last)
		}
		out.AllowPorts = append(out.AllowPorts, text)
	}
	return out
}

// PresetDomains returns what the presets of a policy stand for.
func PresetDomains(all []sandbox.PresetDomain) []v1.PresetDomain {
	var out []v1.PresetDomain
	for _, d := range all {
		out = append(out, v1.PresetDomain{Preset: d.Preset, Domain: d.Domain, Source: d.Source})
	}
	return out
}
