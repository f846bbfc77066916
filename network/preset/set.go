// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preset

import (
	"maps"
	"slices"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of presets.
const (
	MaxHosts   = 16 // of a preset, as each machine's settings say
	maxPresets = 64 // of a server
	maxName    = 32 // bytes of a preset's name
)

// Options are what a server adds to the presets that there are.
type Options struct {
	// Host is the server's own host, whose package tools may be set to a mirror.
	Host Machine
	// Lists are the operator's presets by their names. They take the place of others of the
	// same name; an empty list removes one.
	Lists map[string][]string
}

// Set is the presets of a server. It is never changed, and safe for concurrent use.
type Set struct {
	host  Machine
	lists map[string]list
}

// list is one preset: names, or a tool whose settings have them.
type list struct {
	domains []string
	source  string
	about   string
	tool    func(m Machine, image *Machine) []string // image: that m is the host of; nil: m is one itself
}

// New returns the presets that a server has, or fault.Invalid for a list of the operator's.
func New(o Options) (*Set, error) {
	s := &Set{host: o.Host, lists: map[string]list{
		"python": {tool: pip, about: "what pip is set to fetch from"},
		"node":   {tool: npm, about: "what npm is set to fetch from"},
		"debian": {tool: apt, about: "what apt is set to fetch from"},
	}}
	for name, p := range owners() {
		s.lists[name] = list{domains: p.domains, source: sandbox.PresetPublished, about: p.source}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Lists)) {
		if !isName(name) {
			return nil, fault.InvalidField("network.presets", "%q is not a valid name of a preset; use lower-case letters, digits and hyphens, at most %d, beginning with a letter", sandbox.Clip(name, 40), maxName)
		}
		field := "network.presets." + name
		if n := len(o.Lists[name]); n > sandbox.MaxAllowDomains {
			return nil, fault.InvalidField(field, "has %d names, and may have %d", n, sandbox.MaxAllowDomains)
		}
		var domains []string
		for _, d := range o.Lists[name] {
			n, err := sandbox.CheckDomain(field, d)
			if err != nil {
				return nil, err
			}
			domains = append(domains, n)
		}
		if domains == nil {
			delete(s.lists, name)
			continue
		}
		s.lists[name] = list{domains: domains, source: sandbox.PresetFromOperator, about: "what the server's operator lists"}
	}
	if len(s.lists) > maxPresets {
		return nil, fault.InvalidField("network.presets", "make %d presets with those that there are, and may make %d", len(s.lists), maxPresets)
	}
	return s, nil
}

func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (i == 0 || (c < '0' || c > '9') && c != '-') {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

// Names returns the names of all presets, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.lists)) }

// Check returns names of presets, each once, or fault.Invalid with those that there are.
func (s *Set) Check(field string, names []string) ([]string, error) {
	var out []string
	for _, n := range names {
		if _, ok := s.lists[n]; !ok {
			return nil, fault.InvalidField(field, "%q is not a preset of this server; there are %s", sandbox.Clip(n, 40), strings.Join(s.Names(), ", ")).
				WithRemedy("use one of them, or name hosts in allow_domains")
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, nil
}

// About says in a few words where the names of a preset come from.
func (s *Set) About(name string) string { return s.lists[name].about }

// Reads reports whether what a preset stands for depends on the image.
func (s *Set) Reads(name string) bool { return s.lists[name].tool != nil }

// Resolve returns what a preset stands for in a sandbox of an image: nothing, where no tool says.
// What the host's tools say as well counts as said there.
func (s *Set) Resolve(name string, image Machine) []sandbox.PresetDomain {
	l := s.lists[name]
	var out []sandbox.PresetDomain
	add := func(source string, domains []string) {
		n := 0
		for _, d := range domains {
			if n == MaxHosts && l.tool != nil {
				return
			}
			if slices.ContainsFunc(out, func(x sandbox.PresetDomain) bool { return x.Domain == d }) {
				continue
			}
			out = append(out, sandbox.PresetDomain{Preset: name, Domain: d, Source: source})
			n++
		}
	}
	if l.tool == nil {
		add(l.source, l.domains)
		return out
	}
	add(sandbox.PresetFromHost, l.tool(s.host, &image))
	if image.Files != nil {
		add(sandbox.PresetFromImage, slices.DeleteFunc(l.tool(image, nil), func(d string) bool { return !strings.Contains(d, ".") }))
	}
	return out
}
