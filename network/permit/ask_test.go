// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestWhatMayBeAskedFor(t *testing.T) {
	r := rules(t, map[string][]string{"lists": {"a.test"}})
	for _, tc := range []struct {
		ask              Ask
		most             sandbox.NetworkMode
		presets, domains []string
		want             fault.Code
		says             string
	}{
		{AskNames, "", []string{"lists"}, []string{"B.test"}, "", ""},
		{AskPresets, "", []string{"lists"}, nil, "", ""},
		{AskPresets, "", nil, []string{"b.test"}, fault.Denied, "presets alone"},
		{AskNothing, "", []string{"lists"}, nil, fault.Denied, "network.ask"},
		{AskNames, sandbox.NetworkOff, []string{"lists"}, nil, fault.Denied, "the most is off"},
		{AskNames, "", nil, nil, fault.Invalid, "is empty"},
		{AskNames, "", nil, []string{"*.test.test"}, fault.Invalid, "exact name"},
		{AskNames, "", nil, []string{"10.0.0.1"}, fault.Invalid, "address"},
		{AskNames, "", []string{"pyhton"}, nil, fault.Invalid, "not a preset"},
		{AskNames, "", nil, make([]string, maxAsked+1), fault.Invalid, "17 entries"},
	} {
		r.Ask, r.Most = tc.ask, tc.most
		p, err := r.Asked(tc.presets, tc.domains)
		if fault.Of(err) != tc.want || err != nil && !strings.Contains(fault.As(err).Message+err.Error(), tc.says) {
			t.Errorf("%s %q %q: %v, want %q that says %q", tc.ask, tc.presets, tc.domains, err, tc.want, tc.says)
		}
		if err == nil && p.Mode != sandbox.NetworkRestricted {
			t.Errorf("%+v", p)
		}
	}
}

// What an image says is granted to who asks for its preset, where the operator gives that to all; as a
// name of its own it would reach ranges that the operator allows.
func TestWhatTheOperatorsRulesGrant(t *testing.T) {
	r := rules(t, map[string][]string{"lists": {"*.lists.test"}, "more": {"more.test"}})
	r.Curated = []string{"curated.test"}
	r.Default = sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowPresets: []string{"python", "lists"}, AllowDomains: []string{"default.test"}}
	all, err := r.List(new(image(t, "[global]\nindex-url = https://image.test\n")))
	if err != nil {
		t.Fatal(err)
	}
	for words, want := range map[string]bool{
		"python": true, "lists": true, "curated.test": true, "default.test": true, "a.lists.test": true, "python curated.test": true,
		"more": false, "other.test": false, "image.test": false, "python other.test": false,
	} {
		var presets, domains []string
		for w := range strings.FieldsSeq(words) {
			if strings.Contains(w, ".") {
				domains = append(domains, w)
			} else {
				presets = append(presets, w)
			}
		}
		asked, err := r.Asked(presets, domains)
		if err != nil {
			t.Fatal(err)
		}
		if asked, err = r.Join(asked, all); err != nil {
			t.Fatal(err)
		}
		if got, err := r.ByRule(asked, all); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", words, got, err, want)
		}
	}
}

func TestWiden(t *testing.T) {
	was := sandbox.NetworkPolicy{
		Mode: sandbox.NetworkRestricted, AllowDomains: []string{"own.test", "image.test"}, AllowPresets: []string{"python"},
		PresetDomains: []sandbox.PresetDomain{{Preset: "python", Domain: "image.test", Source: sandbox.PresetFromImage}},
		AllowPorts:    []sandbox.PortRange{{First: 443, Last: 443}},
	}
	got := Widen(was, []string{"node", "python"}, []string{"own.test", "new.test"})
	if !slices.Equal(got.AllowDomains, []string{"own.test", "new.test"}) || !slices.Equal(got.AllowPresets, []string{"python", "node"}) || got.PresetDomains != nil || len(got.AllowPorts) != 1 {
		t.Errorf("%+v", got)
	}
	if got := Widen(sandbox.NetworkPolicy{}, nil, []string{"a.test"}); got.Mode != sandbox.NetworkRestricted || len(got.AllowDomains) != 1 {
		t.Errorf("of off: %+v", got)
	}
	if got := Widen(sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, nil, []string{"a.test"}); got.AllowDomains != nil {
		t.Errorf("of open: %+v", got)
	}
	denies := sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, DenyDomains: []string{"*.denied.test"}}
	if got := Widen(denies, []string{"node"}, []string{"a.denied.test"}); got.Mode != sandbox.NetworkOpen || !slices.Equal(got.AllowDomains, []string{"a.denied.test"}) || !slices.Equal(got.AllowPresets, []string{"node"}) || !slices.Equal(got.DenyDomains, denies.DenyDomains) {
		t.Errorf("of open with a list of what is denied: %+v", got)
	}
	if Covers(denies, sandbox.NetworkPolicy{AllowDomains: []string{"a.denied.test"}}) || !Covers(denies, sandbox.NetworkPolicy{AllowDomains: []string{"b.test"}}) {
		t.Error("what open with a list of what is denied covers")
	}
	if !Covers(was, sandbox.NetworkPolicy{AllowDomains: []string{"image.test"}}) || Covers(was, sandbox.NetworkPolicy{AllowDomains: []string{"own.test", "x.test"}}) || Covers(sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}, was) {
		t.Error("what a policy covers")
	}
}

func TestExceeds(t *testing.T) {
	image := func(d string) sandbox.PresetDomain {
		return sandbox.PresetDomain{Preset: "python", Domain: d, Source: sandbox.PresetFromImage}
	}
	https := []sandbox.PortRange{{First: 443, Last: 443}}
	was := sandbox.NetworkPolicy{
		Mode: sandbox.NetworkRestricted, AllowDomains: []string{"was.test", "*.wild.test"}, AllowPorts: https,
		AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
	}
	shown := sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowDomains: []string{"shown.test", "image.test", "*.all.test"}, PresetDomains: []sandbox.PresetDomain{image("image.test")}}
	change := func(by func(*sandbox.NetworkPolicy)) sandbox.NetworkPolicy {
		p := was
		p.AllowDomains = append(slices.Clone(was.AllowDomains), shown.AllowDomains...)
		p.PresetDomains = slices.Clone(shown.PresetDomains)
		by(&p)
		return p
	}
	open := sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, DenyDomains: []string{"denied.test"}, DenyCIDRs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	for name, tc := range map[string]struct {
		p, was sandbox.NetworkPolicy
		want   string
	}{
		"what was shown":                    {change(func(*sandbox.NetworkPolicy) {}), was, ""},
		"less":                              {change(func(p *sandbox.NetworkPolicy) { p.AllowDomains = p.AllowDomains[:1] }), was, ""},
		"below a wildcard":                  {change(func(p *sandbox.NetworkPolicy) { p.AllowDomains = append(p.AllowDomains, "a.wild.test", "b.all.test") }), was, ""},
		"another name":                      {change(func(p *sandbox.NetworkPolicy) { p.AllowDomains = append(p.AllowDomains, "more.test") }), was, "more.test"},
		"all below one":                     {change(func(p *sandbox.NetworkPolicy) { p.AllowDomains = append(p.AllowDomains, "*.shown.test") }), was, "*.shown.test"},
		"an image's word as another's":      {change(func(p *sandbox.NetworkPolicy) { p.PresetDomains = nil }), was, "image.test"},
		"another's word as an image's":      {change(func(p *sandbox.NetworkPolicy) { p.PresetDomains = append(p.PresetDomains, image("shown.test")) }), was, ""},
		"addresses":                         {change(func(p *sandbox.NetworkPolicy) { p.AllowCIDRs = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/23")} }), was, "192.0.2.0/23"},
		"ports":                             {change(func(p *sandbox.NetworkPolicy) { p.AllowPorts = nil }), was, "other ports"},
		"learning":                          {change(func(p *sandbox.NetworkPolicy) { p.Learn = true }), was, "every host"},
		"open":                              {sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, was, "every host"},
		"open as it was":                    {sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, ""},
		"open, with less denied":            {sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, open, "denied.test"},
		"open, with fewer addresses":        {sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, DenyDomains: open.DenyDomains}, open, "192.0.2.0/24"},
		"open, with more denied":            {sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, DenyDomains: []string{"denied.test", "x.test"}, DenyCIDRs: open.DenyCIDRs}, open, ""},
		"open, but for what was shown":      {sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, DenyDomains: open.DenyDomains, DenyCIDRs: open.DenyCIDRs, AllowDomains: []string{"shown.test"}}, open, ""},
		"open, but for another":             {sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, DenyDomains: open.DenyDomains, DenyCIDRs: open.DenyCIDRs, AllowDomains: []string{"denied.test"}}, open, "denied.test"},
		"a list of what was denied":         {change(func(p *sandbox.NetworkPolicy) {}), open, "192.0.2.0/24"},
		"what was there before, off by now": {change(func(p *sandbox.NetworkPolicy) { p.AllowCIDRs, p.AllowPorts = nil, nil }), sandbox.NetworkPolicy{Mode: sandbox.NetworkOff, AllowDomains: []string{"was.test"}}, "was.test"},
	} {
		if got := Exceeds(tc.p, tc.was, shown); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
