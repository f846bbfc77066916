// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

// networkWords are the fields of a create or an update that say what a sandbox may reach.
type networkWords struct {
	network any // a mode, or an object
	enabled *bool
	block   *bool
	cidrs   *string
	domains *string
}

// network reads all spellings of a policy; nil: there is none of them.
func (w networkWords) read(sp *httpapi.Spellings) *sandbox.NetworkPolicy {
	p := networkPolicy(sp, w.network)
	mode := func(field string, said any, means sandbox.NetworkMode) {
		if p == nil {
			sp.Wrote("network", field)
			p = &sandbox.NetworkPolicy{Mode: means}
		} else if (p.Mode == sandbox.NetworkOff) != (means == sandbox.NetworkOff) {
			sp.Disagree("network", p.Mode, field, said)
		}
	}
	if w.enabled != nil {
		mode("network_enabled", *w.enabled, map[bool]sandbox.NetworkMode{true: sandbox.NetworkOpen, false: sandbox.NetworkOff}[*w.enabled])
	}
	if w.block != nil && *w.block {
		mode("network_block_all", true, sandbox.NetworkOff)
	}
	for _, l := range []struct {
		field string
		text  *string
		add   func(string)
	}{
		{"network_allow_list", w.cidrs, func(s string) { p.AllowCIDRs = append(p.AllowCIDRs, cidr(sp, "network_allow_list", s)) }},
		{"domain_allow_list", w.domains, func(s string) { p.AllowDomains = append(p.AllowDomains, s) }},
	} {
		if l.text == nil || *l.text == "" {
			continue
		}
		if p == nil || p.Mode == sandbox.NetworkOpen && w.network == nil {
			p = &sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted}
		}
		if p.Mode != sandbox.NetworkRestricted {
			sp.Add(l.field, "goes with network restricted, and the mode is %s", p.Mode)
		}
		items := strings.Split(*l.text, ",")
		if tooMany(sp, l.field, len(items)) {
			continue
		}
		for _, item := range items {
			l.add(strings.TrimSpace(item))
		}
	}
	return p
}

// networkPolicy reads a mode, or an object.
func networkPolicy(sp *httpapi.Spellings, v any) *sandbox.NetworkPolicy {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		if !slices.Contains([]string{"off", "restricted", "open"}, v) {
			sp.Add("network", "%q is not valid; use off, restricted or open", sandbox.Clip(v, 80))
			return nil
		}
		return &sandbox.NetworkPolicy{Mode: sandbox.NetworkMode(v)}
	case map[string]any:
		return networkObject(sp, v)
	}
	sp.Add("network", "is neither a mode (off, restricted, open) nor an object with one")
	return nil
}

// headersOf reads {"host": {"name": "value"}}.
func headersOf(sp *httpapi.Spellings, field string, v any) sandbox.HostHeaders {
	hosts, ok := v.(map[string]any)
	if !ok && v != nil {
		sp.Add(field, "is not an object such as {\"api.example.org\": {\"x-org\": \"acme\"}}")
	}
	out := make(sandbox.HostHeaders, len(hosts))
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		in := field + "." + sandbox.Clip(host, 80)
		headers, ok := hosts[host].(map[string]any)
		if !ok {
			sp.Add(in, "is not an object of names and values of headers")
			continue
		}
		out[host] = make(map[string]string, len(headers))
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			value, ok := headers[name].(string)
			if !ok {
				sp.Add(in+"."+sandbox.Clip(name, 80), "is no text")
			}
			out[host][name] = value
		}
	}
	return out
}

func networkObject(sp *httpapi.Spellings, v map[string]any) *sandbox.NetworkPolicy {
	p := &sandbox.NetworkPolicy{}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		field := "network." + sandbox.Clip(name, 80)
		switch name {
		case "mode":
			mode, ok := v[name].(string)
			if !ok {
				sp.Add(field, "is no text")
			}
			p.Mode = sandbox.NetworkMode(mode)
		case "learn":
			learn, ok := v[name].(bool)
			if !ok {
				sp.Add(field, "is neither true nor false")
			}
			p.Learn = learn
		case "allow_domains":
			p.AllowDomains = texts(sp, field, v[name])
		case "allow_cidrs":
			for _, text := range texts(sp, field, v[name]) {
				p.AllowCIDRs = append(p.AllowCIDRs, cidr(sp, field, text))
			}
		case "deny_domains":
			p.DenyDomains = texts(sp, field, v[name])
		case "deny_cidrs":
			for _, text := range texts(sp, field, v[name]) {
				p.DenyCIDRs = append(p.DenyCIDRs, cidr(sp, field, text))
			}
		case "headers":
			p.Headers = headersOf(sp, field, v[name])
		case "allow_presets":
			p.AllowPresets = texts(sp, field, v[name])
		case "preset_domains": // of an answer that is sent back; see ownDomains
		case "allow_ports":
			for _, text := range texts(sp, field, v[name]) {
				r, err := sandbox.ParsePorts(field, text)
				if err != nil {
					sp.Take(err)
				}
				p.AllowPorts = append(p.AllowPorts, r)
			}
		default:
			sp.Add(field, "is unknown; there are mode, allow_domains, allow_cidrs, allow_ports, allow_presets, deny_domains, deny_cidrs, headers and learn")
		}
	}
	p.AllowDomains = ownDomains(p, v["preset_domains"])
	if p.Mode == "" {
		// Lists without a mode can mean one thing only.
		if p.Mode = sandbox.NetworkRestricted; p.Denies() {
			p.Mode = sandbox.NetworkOpen
		} else if len(p.AllowDomains)+len(p.AllowCIDRs)+len(p.AllowPresets) == 0 {
			sp.Add("network.mode", "is missing; use off, restricted or open")
		}
	}
	return p
}

// ownDomains returns the names of a policy without those that an answer, which is sent back, says are
// there for its presets alone: they would else become the caller's own word.
func ownDomains(p *sandbox.NetworkPolicy, answered any) []string {
	list, _ := answered.([]any)
	if len(list) > sandbox.MaxAllowDomains {
		return p.AllowDomains
	}
	for _, item := range list {
		d, _ := item.(map[string]any)
		name, _ := d["preset"].(string)
		domain, _ := d["domain"].(string)
		if slices.Contains(p.AllowPresets, name) {
			p.AllowDomains = slices.DeleteFunc(p.AllowDomains, func(own string) bool { return own == domain })
		}
	}
	return p.AllowDomains
}

// texts reads a list of texts; a port may be a number.
func texts(sp *httpapi.Spellings, field string, v any) []string {
	list, ok := v.([]any)
	if !ok {
		sp.Add(field, "is no list")
		return nil
	}
	if tooMany(sp, field, len(list)) {
		return nil
	}
	var out []string
	for i, item := range list {
		switch item := item.(type) {
		case string:
			out = append(out, item)
		case float64:
			out = append(out, fmt.Sprint(item))
		default:
			sp.Add(field, "entry %d is not a string", i+1)
		}
	}
	return out
}

// tooMany refuses lists longer than any may be, before each entry is told what is
// wrong with it.
func tooMany(sp *httpapi.Spellings, field string, n int) bool {
	if n <= sandbox.MaxAllowDomains {
		return false
	}
	sp.Add(field, "has %d entries; %d are the most", n, sandbox.MaxAllowDomains)
	return true
}

func cidr(sp *httpapi.Spellings, field, text string) netip.Prefix {
	p, err := sandbox.ParseCIDR(field, text)
	if err != nil {
		sp.Take(err)
	}
	return p
}

type presetsInput struct {
	Image *string `query:"image" doc:"of sandboxes of this image; default: the default one"`
}

func (a *API) listPresets(ctx context.Context, c *idempotency.Call, in *presetsInput) (v1.PresetList, error) {
	all, built, err := a.Networks.Presets(ctx, c.Caller, httpapi.Given(in.Image))
	if err != nil {
		return v1.PresetList{}, err
	}
	out := v1.PresetList{Items: []v1.Preset{}, Built: built}
	for _, p := range all {
		one := v1.Preset{Name: p.Name, About: p.About, Domains: shape.PresetDomains(p.Domains)}
		if one.Domains == nil {
			one.Domains = []v1.PresetDomain{}
		}
		out.Items = append(out.Items, one)
	}
	return out, nil
}

func (a *API) networkLog(ctx context.Context, c *idempotency.Call, in *byRef) (v1.NetworkLog, error) {
	log, err := a.Networks.NetworkLog(ctx, c.Caller, in.Ref)
	if err != nil {
		return v1.NetworkLog{}, err
	}
	return networkLogOf(log), nil
}

func networkLogOf(log engine.NetworkLog) v1.NetworkLog {
	out := v1.NetworkLog{
		Policy: shape.Policy(log.Policy), Since: shape.TimeOrNull(log.Since), Items: []v1.NetworkEntry{},
		Dropped: log.Dropped, Proposal: shape.Policy(log.Proposal),
	}
	for _, e := range log.Entries {
		x := v1.NetworkEntry{
			Protocol: e.Protocol, Name: e.Name, Port: int(e.Port), Count: e.Count, FirstAt: e.First.UTC(), LastAt: e.Last.UTC(),
			Allowed: e.Reason == policy.Allowed || e.Learned, Learned: e.Learned, Reason: string(e.Reason),
		}
		if e.Address.IsValid() {
			x.Address = e.Address.String()
		}
		if e.Reason != policy.Allowed {
			x.Detail = e.Explain()
		}
		out.Items = append(out.Items, x)
	}
	return out
}

func (a *API) networks() []string {
	var out []string
	for _, m := range a.Networks.Networks() {
		out = append(out, string(m))
	}
	return out
}
