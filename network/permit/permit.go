// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package permit decides which policy a sandbox gets of the one that a caller asks for: what the
// operator allows at most, what a caller gets that names nothing, and what presets stand for.
package permit

import (
	"net/netip"
	"os"
	"slices"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/network/policy"
	"sandpit.dev/network/preset"
	"sandpit.dev/sandbox"
)

// Rules are the operator's. They are never changed, and safe for concurrent use.
type Rules struct {
	// Most is the widest mode that a sandbox may have; "" is open.
	Most sandbox.NetworkMode
	// Curated are the names that a sandbox may reach which asks for mode restricted
	// and gives no list.
	Curated []string
	// Default is the policy of a sandbox for which a caller asks for none; its zero value is off.
	Default sandbox.NetworkPolicy
	Ask     Ask // what may be asked for; "" is names
	// Elicit has what was asked for granted or denied through the client that asked, too.
	Elicit  bool
	Presets *preset.Set
}

// Image is the image of a sandbox, which presets are read from.
type Image struct {
	Root string // its files
	Env  map[string]string
}

// modes in the order of how far they reach.
var modes = []sandbox.NetworkMode{sandbox.NetworkOff, sandbox.NetworkRestricted, sandbox.NetworkOpen}

// Modes lists the modes that sandboxes may have, the narrowest first.
func (r Rules) Modes() []sandbox.NetworkMode {
	for i, m := range modes {
		if m == r.Most {
			return slices.Clone(modes[:i+1])
		}
	}
	return slices.Clone(modes)
}

// wider reports whether a policy reaches further than sandboxes may.
func (r Rules) wider(p sandbox.NetworkPolicy) bool {
	return r.Most != "" && slices.Index(modes, reach(p)) > slices.Index(modes, r.Most)
}

// reach is the mode that a policy comes to: one that learns, or lists all addresses, is open.
func reach(p sandbox.NetworkPolicy) sandbox.NetworkMode {
	if p.Learn || slices.ContainsFunc(p.AllowCIDRs, func(c netip.Prefix) bool { return c.Bits() == 0 }) {
		return sandbox.NetworkOpen
	}
	return p.Mode
}

// Check checks a policy that a caller asks for, and fills it in, all but what its presets stand for;
// nil is the default.
func (r Rules) Check(asked *sandbox.NetworkPolicy) (sandbox.NetworkPolicy, error) {
	if asked == nil {
		return r.Bounded(r.Default), nil
	}
	p, err := asked.Normal()
	if err != nil {
		return p, err
	}
	if r.wider(p) {
		return p, r.tooWide(p)
	}
	p.PresetDomains = nil // no caller says who said what
	if p.AllowPresets, err = r.Presets.Check("network.allow_presets", p.AllowPresets); err != nil {
		return p, err
	}
	if p.Mode != sandbox.NetworkRestricted || len(p.AllowDomains)+len(p.AllowCIDRs)+len(p.AllowPresets) > 0 {
		return p, nil
	}
	if p.AllowDomains = slices.Clone(r.Curated); len(p.AllowDomains) == 0 && !p.Learn {
		return p, fault.InvalidField("network", "restricted reaches nothing without a list").
			WithRemedy("name hosts in allow_domains, or presets in allow_presets (%s); else use off", strings.Join(r.Presets.Names(), ", "))
	}
	return p, nil
}

// tooWide refuses a policy that is wider than the operator allows. The field is the caller's.
func (r Rules) tooWide(p sandbox.NetworkPolicy) error {
	e := fault.As(fault.InvalidField("network", "the mode %s is not allowed on this server; the most is %s (learn, and lists of all addresses, are as wide as open)", reach(p), r.Most))
	e.Code = fault.Denied
	if r.Most == sandbox.NetworkOff {
		return e.WithRemedy("leave the network off, or ask the server's operator")
	}
	return e.WithRemedy("ask for mode %s with lists, or ask the server's operator", r.Most)
}

// Bounded is as much of a policy as the operator allows by now: it may be less than when the sandbox
// was made.
func (r Rules) Bounded(p sandbox.NetworkPolicy) sandbox.NetworkPolicy {
	if p.Mode == "" {
		p.Mode = sandbox.NetworkOff
	}
	if !r.wider(p) {
		return p
	}
	if r.Most == sandbox.NetworkOff || p.Mode == sandbox.NetworkOpen {
		if r.Most == sandbox.NetworkOff {
			p.Headers = nil
		}
		return sandbox.NetworkPolicy{Mode: r.Most, Headers: p.Headers}
	}
	p.Learn = false
	p.AllowCIDRs = slices.DeleteFunc(slices.Clone(p.AllowCIDRs), func(c netip.Prefix) bool { return c.Bits() == 0 })
	return p
}

// ResolveDefault is Resolve for a policy that nobody asked for: presets that stand for nothing in the
// image are left out, and what then reaches nothing is off.
func (r Rules) ResolveDefault(p sandbox.NetworkPolicy, find func() (Image, error)) (sandbox.NetworkPolicy, error) {
	if len(p.AllowPresets) == 0 {
		return p, nil
	}
	img, err := find()
	if err != nil {
		return p, err
	}
	all, err := r.List(&img)
	if err != nil {
		return p, err
	}
	return r.JoinDefault(p, all)
}

// JoinDefault is ResolveDefault where it is known what all presets stand for.
func (r Rules) JoinDefault(p sandbox.NetworkPolicy, all []Preset) (sandbox.NetworkPolicy, error) {
	p.AllowPresets = slices.DeleteFunc(slices.Clone(p.AllowPresets), func(n string) bool { return len(domainsOf(all, n)) == 0 })
	if p.Mode == sandbox.NetworkRestricted && len(p.AllowDomains)+len(p.AllowCIDRs)+len(p.AllowPresets) == 0 {
		return sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}, nil
	}
	return r.Join(p, all)
}

// Join is Resolve where it is known what all presets stand for.
func (r Rules) Join(p sandbox.NetworkPolicy, all []Preset) (sandbox.NetworkPolicy, error) {
	return r.join(p, func(n string) []sandbox.PresetDomain { return domainsOf(all, n) })
}

func domainsOf(all []Preset, name string) []sandbox.PresetDomain {
	for _, p := range all {
		if p.Name == name {
			return p.Domains
		}
	}
	return nil
}

// Parse reads what a word of the operator's stands for: off, open, or a list of presets, names and
// addresses with commas, as in the flag --allow.
func (r Rules) Parse(field, text string) (sandbox.NetworkPolicy, error) {
	p := sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted}
	switch m := sandbox.NetworkMode(text); m {
	case "":
		return sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}, nil
	case sandbox.NetworkOff, sandbox.NetworkOpen:
		p.Mode = m
	default:
		for one := range strings.SplitSeq(text, ",") {
			one = strings.TrimSpace(one)
			if c, err := sandbox.ParseCIDR(field, one); err == nil {
				p.AllowCIDRs = append(p.AllowCIDRs, c)
			} else if strings.Contains(one, ".") {
				p.AllowDomains = append(p.AllowDomains, one)
			} else {
				p.AllowPresets = append(p.AllowPresets, one)
			}
		}
	}
	p, err := r.Check(&p)
	if err != nil {
		return p, fault.InvalidField(field, "%q is not a valid network: %s", sandbox.Clip(text, 80), fault.As(err).Message).
			WithRemedy("write off, open, or presets (%s), names and addresses with commas", strings.Join(r.Presets.Names(), ", "))
	}
	return p, nil
}

// Resolve adds to a policy what its presets stand for in a sandbox of an image, which find finds. What
// the caller's own lists allow is the caller's word, whoever else says it.
func (r Rules) Resolve(p sandbox.NetworkPolicy, find func() (Image, error)) (sandbox.NetworkPolicy, error) {
	if len(p.AllowPresets) == 0 {
		return p, nil
	}
	var m preset.Machine
	if slices.ContainsFunc(p.AllowPresets, r.Presets.Reads) {
		img, err := find()
		if err != nil {
			return p, err
		}
		root, opened, err := open(img)
		if err != nil {
			return p, err
		}
		defer root.Close()
		m = opened
	}
	return r.join(p, func(n string) []sandbox.PresetDomain { return r.Presets.Resolve(n, m) })
}

func (r Rules) join(p sandbox.NetworkPolicy, stands func(string) []sandbox.PresetDomain) (sandbox.NetworkPolicy, error) {
	var certain, chosen []sandbox.PresetDomain // an image's word counts for what nobody else says
	for _, n := range p.AllowPresets {
		found := stands(n)
		if len(found) == 0 {
			return p, fault.InvalidField("network.allow_presets", "%q stands for no host here: it is %s, and that names none, in the image and on the host", n, r.Presets.About(n)).
				WithRemedy("name the hosts in allow_domains, or ask the server's operator to list them as network.presets.%s", n)
		}
		for _, d := range found {
			if d.Source == sandbox.PresetFromImage {
				chosen = append(chosen, d)
			} else {
				certain = append(certain, d)
			}
		}
	}
	p.AllowDomains, p.PresetDomains = slices.Clone(p.AllowDomains), nil
	for _, d := range append(certain, chosen...) {
		if allows(p, d.Domain) {
			continue
		}
		p.AllowDomains = append(p.AllowDomains, d.Domain)
		p.PresetDomains = append(p.PresetDomains, d)
	}
	if n := len(p.AllowDomains); n > sandbox.MaxAllowDomains {
		return p, fault.InvalidField("network.allow_domains", "has %d entries with those of the presets, and may have %d", n, sandbox.MaxAllowDomains)
	}
	return p, nil
}

// allows reports whether a policy allows a name, or all names of a wildcard, already.
func allows(p sandbox.NetworkPolicy, domain string) bool {
	if rest, wild := strings.CutPrefix(domain, "*."); wild {
		domain = "any." + rest
		p.AllowDomains = slices.DeleteFunc(slices.Clone(p.AllowDomains), func(d string) bool { return d == domain })
	}
	return policy.New(p, policy.Operator{}).Name(domain) == policy.Allowed
}

// open opens an image's files, and gives it as its package tools see it.
func open(img Image) (*os.Root, preset.Machine, error) {
	root, err := os.OpenRoot(img.Root)
	if err != nil {
		return nil, preset.Machine{}, fault.Wrap(fault.Internal, err, "the sandbox's image cannot be read")
	}
	return root, preset.Machine{Files: root.FS(), Homes: []string{"home/sandbox", "root"}, Env: func(name string) string { return img.Env[name] }}, nil
}

// Preset is a name for a list of hosts, and what it stands for.
type Preset struct {
	Name    string
	About   string // where the list is from
	Domains []sandbox.PresetDomain
}

// List tells what all presets stand for in a sandbox of an image; nil: of none.
func (r Rules) List(img *Image) ([]Preset, error) {
	var m preset.Machine
	if img != nil {
		root, opened, err := open(*img)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		m = opened
	}
	var all []Preset
	for _, n := range r.Presets.Names() {
		all = append(all, Preset{Name: n, About: r.Presets.About(n), Domains: r.Presets.Resolve(n, m)})
	}
	return all, nil
}

// Words says of a policy what its presets stand for, and who says so; "" if it has none.
func Words(p sandbox.NetworkPolicy) string {
	if len(p.AllowPresets) == 0 {
		return ""
	}
	out := "network presets " + strings.Join(p.AllowPresets, ", ")
	for i, d := range p.PresetDomains {
		if i == 0 {
			out += ": "
		} else {
			out += ", "
		}
		out += d.Domain + " (" + d.Source + ")"
	}
	return out
}
