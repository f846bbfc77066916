// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/network/egress"
	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

func TestSandboxesDoNotReachTheHost(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.9:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	range8 := netip.MustParsePrefix("127.0.0.0/8")
	_, err = outside(policy.Operator{Allow: []netip.Prefix{range8}})(t.Context(), "tcp", l.Addr().String())
	if !fault.Is(err, fault.Denied) {
		t.Errorf("an address of the host within a range that is allowed: %v", err)
	}
	alone := netip.MustParsePrefix("127.0.0.9/32")
	c, err := outside(policy.Operator{Allow: []netip.Prefix{alone}})(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Errorf("one that is named: %v", err)
	} else {
		_ = c.Close()
	}
}

func TestSearchDomains(t *testing.T) {
	got := searchDomains("# search no.example\nnameserver 127.0.0.1\nsearch Corp.example.org. example.net .\ndomain other.example\nsearch\n", "box.site.example")
	if want := []string{"corp.example.org", "example.net", "other.example", "site.example"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := searchDomains("", "box"); got != nil {
		t.Errorf("of nothing: %q", got)
	}
}

func TestNetworkConfig(t *testing.T) {
	for _, c := range []NetworkConfig{
		{MaxMode: "wide"}, {MaxMode: "open", Curated: []string{"a b"}}, {MaxMode: "open", AllowPrivate: []string{"x"}}, {MaxMode: "open", Block: []string{"10.0.0.0/33"}},
		{MaxMode: "open", Presets: map[string][]string{"Python": {"a.test"}}}, {MaxMode: "open", Presets: map[string][]string{"python": {"10.0.0.1"}}},
		{MaxMode: "open", Ask: "all"}, {MaxMode: "open", Default: "pyhton"}, {MaxMode: "open", Default: "a b.test"}, {MaxMode: "open", Default: "restricted"}, {MaxMode: "restricted", Default: "open"}, {MaxMode: "off", Default: "python"},
		{MaxMode: "open", Names: NamesConfig{Different: -1}}, {MaxMode: "open", Names: NamesConfig{QuestionsPerMinute: egress.MaxQuota + 1}},
	} {
		if _, err := c.options(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	o, err := NetworkConfig{MaxMode: "restricted", Curated: []string{"Example.org."}, AllowPrivate: []string{"10.0.0.1"}}.options()
	if err != nil || o.Curated[0] != "example.org" || o.Operator.Allow[0] != netip.MustParsePrefix("10.0.0.1/32") {
		t.Errorf("%+v, %v", o, err)
	}
	if o.Quota != egress.DefaultQuota() {
		t.Errorf("a quota that nobody asked for: %+v", o.Quota)
	}
	o2, err2 := NetworkConfig{MaxMode: "open", Presets: map[string][]string{"intranet": {"git.test"}, "github": {}}}.options()
	if got := o2.Presets.Names(); err2 != nil || !slices.Equal(got, []string{"debian", "huggingface", "intranet", "node", "python"}) {
		t.Errorf("presets %q, %v", got, err2)
	}
	for text, want := range map[string]sandbox.NetworkPolicy{
		"": {Mode: "off"}, "off": {Mode: "off"}, "open": {Mode: "open"},
		"python, Example.org,192.0.2.0/24": {Mode: "restricted", AllowPresets: []string{"python"}, AllowDomains: []string{"example.org"}, AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
	} {
		o, err := NetworkConfig{MaxMode: "open", Default: text}.options()
		if err != nil || !o.Default.Equal(want) {
			t.Errorf("by default %q: %+v, %v", text, o.Default, err)
		}
	}
	o, err = NetworkConfig{MaxMode: "open", Elicit: true, Names: NamesConfig{Different: 7, QuestionsPerMinute: 9}}.options()
	if !o.Elicit || o2.Elicit {
		t.Errorf("elicitation is %v where it is on, and %v where nobody switched it on", o.Elicit, o2.Elicit)
	}
	want := egress.DefaultQuota()
	want.Names, want.QuestionsPerMinute = 7, 9
	if err != nil || o.Quota != want {
		t.Errorf("%+v, %v", o.Quota, err)
	}
}

func TestTheDoctorTellsWhoGrants(t *testing.T) {
	cfg := Config{Network: NetworkConfig{MaxMode: "open"}}
	find := func() (found []Check) {
		for _, c := range Doctor(t.Context(), cfg, false) {
			if c.Name == "elicitation" {
				found = append(found, c)
			}
		}
		return found
	}
	if got := find(); got != nil {
		t.Errorf("off as shipped: %+v", got)
	}
	cfg.Network.Elicit = true
	if got := find(); len(got) != 1 || got[0].Status != Passed || !strings.Contains(got[0].Detail, "also if a program answered") {
		t.Errorf("on: %+v", got)
	}
	for field, change := range map[string]func(*NetworkConfig){
		"network.ask is nothing":  func(n *NetworkConfig) { n.Ask = "nothing" },
		"network.max_mode is off": func(n *NetworkConfig) { n.MaxMode = "off" },
	} {
		n := cfg.Network
		change(&n)
		if c := n.checkElicit(); c.Status != Warned || !strings.Contains(c.Detail, field) || c.Remedy == "" {
			t.Errorf("%s: %+v", field, c)
		}
	}
}
