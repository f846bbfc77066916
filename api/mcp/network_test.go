// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/service"
	"sandpit.dev/engine"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/update"
	"sandpit.dev/sandbox"
)

// connected is an engine whose host has a network, and whose sandboxes have a policy.
type connected struct {
	service.Engine
	most   sandbox.NetworkMode
	policy sandbox.NetworkPolicy
}

func (e *connected) Networks() []sandbox.NetworkMode {
	all := []sandbox.NetworkMode{sandbox.NetworkOff, sandbox.NetworkRestricted, sandbox.NetworkOpen}
	return all[:slices.Index(all, e.most)+1]
}

func (e *connected) InForce(p sandbox.NetworkPolicy) sandbox.NetworkPolicy {
	if !slices.Contains(e.Networks(), p.Mode) {
		return sandbox.NetworkPolicy{Mode: e.most}
	}
	return p
}

func (e *connected) Info(ctx context.Context, c access.Caller) (engine.Info, error) {
	i, err := e.Engine.Info(ctx, c)
	for _, r := range i.Runtimes {
		r.Features[engine.FeatureNetwork] = engine.FeatureInfo{Supported: true}
	}
	return i, err
}

func (e *connected) with(s *sandbox.Sandbox, err error) (*sandbox.Sandbox, error) {
	if err != nil {
		return nil, err
	}
	copied := *s
	copied.Network = e.policy
	return &copied, nil
}

func (e *connected) Get(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	return e.with(e.Engine.Get(ctx, c, ref))
}

func (e *connected) Create(ctx context.Context, c access.Caller, r engine.CreateRequest) (*sandbox.Sandbox, bool, error) {
	s, created, err := e.Engine.Create(ctx, c, r)
	s, err = e.with(s, err)
	return s, created, err
}

func (e *connected) List(ctx context.Context, c access.Caller, q engine.SandboxesRequest) (engine.Page, error) {
	page, err := e.Engine.List(ctx, c, q)
	for i, s := range page.Items {
		page.Items[i], _ = e.with(s, nil)
	}
	return page, err
}

func TestAnswersTellTheNetworkThatThereIs(t *testing.T) {
	t.Parallel()
	h := open(t)
	e := &connected{Engine: h.engine, most: sandbox.NetworkOpen, policy: sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}}
	_, h.url = serve(t, e, h.inside, h.runs, h.code, toolset.GroupState)
	s := h.alice()
	type limits struct {
		Networks []string
		Default  string `json:"network_default"`
		Reason   string `json:"network_reason"`
		Sandbox  struct {
			Network      string
			AllowDomains []string `json:"allow_domains"`
			InForce      string   `json:"network_in_force"`
		}
	}
	if got := ok(t, s, "create_sandbox", arguments{"name": "box"}); !strings.Contains(got, "network off\n") {
		t.Errorf("got %s", got)
	}
	if got := ok(t, s, "list_sandboxes", nil); strings.Contains(got, "network") {
		t.Errorf("a list tells what all have: %s", got)
	}

	t.Run("TheServers", func(t *testing.T) {
		for most, want := range map[sandbox.NetworkMode]limits{
			sandbox.NetworkOpen:       {Networks: []string{"off", "restricted", "open"}, Default: "off"},
			sandbox.NetworkRestricted: {Networks: []string{"off", "restricted"}, Default: "off", Reason: "this server's operator allows no more"},
			sandbox.NetworkOff:        {Networks: []string{"off"}, Default: "off", Reason: "this server's operator allows no more"},
		} {
			e.most = most
			res := call(t, s, "get_sandbox_limits", nil)
			if got := structured[limits](t, res); !slices.Equal(got.Networks, want.Networks) || got.Default != want.Default || got.Reason != want.Reason {
				t.Errorf("%s: got %+v, want %+v", most, got, want)
			}
			wantParts(t, text(t, res), strings.Join(want.Networks, ", "), want.Reason)
		}
		e.most = sandbox.NetworkOpen
	})

	t.Run("ASandboxs", func(t *testing.T) {
		e.policy = sandbox.NetworkPolicy{
			Mode: sandbox.NetworkRestricted, AllowDomains: []string{"pypi.example", "*.npm.example"},
			AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, AllowPorts: []sandbox.PortRange{{First: 443, Last: 443}, {First: 8000, Last: 8010}},
		}
		want := "network restricted, names pypi.example, *.npm.example, addresses 192.0.2.0/24, ports 443, 8000-8010"
		wantParts(t, ok(t, s, "create_sandbox", arguments{"name": "box"}), want)
		wantParts(t, ok(t, s, "list_sandboxes", nil), want)
		res := call(t, s, "get_sandbox_limits", arguments{"sandbox": "box"})
		wantParts(t, text(t, res), "sandbox box is running", want)
		if got := structured[limits](t, res).Sandbox; got.Network != "restricted" || !slices.Equal(got.AllowDomains, e.policy.AllowDomains) || got.InForce != "" {
			t.Errorf("got %+v", got)
		}
		h.wrong(t, "get_sandbox_limits", arguments{"sandbox": "none"}, "error (not_found)", "box")
		h.wrong(t, "get_sandbox_limits", arguments{"sandbox": ""}, "argument sandbox is empty")
	})

	t.Run("ItsPresets", func(t *testing.T) {
		e.policy = sandbox.NetworkPolicy{
			Mode: sandbox.NetworkRestricted, AllowDomains: []string{"mirror.example", "image.example"}, AllowPresets: []string{"python"},
			PresetDomains: []sandbox.PresetDomain{
				{Preset: "python", Domain: "mirror.example", Source: sandbox.PresetFromHost}, {Preset: "python", Domain: "image.example", Source: sandbox.PresetFromImage},
			},
		}
		wantParts(t, ok(t, s, "create_sandbox", arguments{"name": "box"}), "network restricted, presets python, names mirror.example, image.example, of which its image alone says image.example")
		wantParts(t, ok(t, s, "get_sandbox_limits", nil), "allow_domains takes the presets debian, github, huggingface, node, python")
		// A word is a preset, and a host's name of one label has a dot behind it.
		h.wrong(t, "create_sandbox", arguments{"name": "other", "allow_domains": "example.org, pyhton"}, `"pyhton" is not a preset of this server`, "debian, github, huggingface, node, python")
		h.wrong(t, "create_sandbox", arguments{"name": "other", "allow_domains": "printer., github"}, "unsupported")
		h.wrong(t, "create_sandbox", arguments{"name": "other", "network": "restricted"}, "without a list", "debian, github, huggingface, node, python")
	})

	t.Run("WhatHoldsOfIt", func(t *testing.T) {
		e.most, e.policy = sandbox.NetworkRestricted, sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}
		res := call(t, s, "get_sandbox_limits", arguments{"sandbox": "box"})
		wantParts(t, text(t, res), "network open (in force: restricted and no more")
		if got := structured[limits](t, res).Sandbox; got.Network != "open" || got.InForce != "restricted" {
			t.Errorf("got %+v", got)
		}
	})
}

// updated is connected with updates of the policy, which are what they come to on the record.
type updated struct{ *connected }

func (e *updated) Update(ctx context.Context, c access.Caller, ref string, p update.Patch) (*sandbox.Sandbox, error) {
	s, err := e.Get(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	if p, err = p.On(s); err != nil {
		return nil, err
	}
	n, err := p.Network.Normal()
	if err != nil {
		return nil, err
	}
	e.policy = n
	return e.Get(ctx, c, ref)
}

func TestAToolThatReplacesThePolicyKeepsItsHeaders(t *testing.T) {
	t.Parallel()
	h := open(t)
	headers := sandbox.HostHeaders{"api.example": {"x-org": "acme"}}
	e := &updated{&connected{Engine: h.engine, most: sandbox.NetworkOpen, policy: sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, Headers: headers}}}
	_, h.url = serve(t, e, h.inside, h.runs, h.code, toolset.GroupManage)
	s := h.alice()
	wantParts(t, ok(t, s, "create_sandbox", arguments{"name": "box"}), "network open, headers api.example/x-org")
	for _, c := range []struct {
		args arguments
		want sandbox.NetworkPolicy
	}{
		{arguments{"allow_domains": "*.host.example"}, sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowDomains: []string{"*.host.example"}, Headers: headers}},
		{arguments{"network": "open"}, sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, Headers: headers}},
		{arguments{"deny": "evil.example"}, sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, DenyDomains: []string{"evil.example"}, Headers: headers}},
		// Headers alone leave the rest of the policy, and take the place of those that there were.
		{arguments{"headers": arguments{"API.example/X-Team": "blue", "*.host.example/x-n": 1}}, sandbox.NetworkPolicy{
			Mode: sandbox.NetworkOpen, DenyDomains: []string{"evil.example"}, Headers: sandbox.HostHeaders{"api.example": {"x-team": "blue"}, "*.host.example": {"x-n": "1"}},
		}},
		{arguments{"headers": arguments{"api.example": arguments{"X-Org": "acme"}}}, sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, DenyDomains: []string{"evil.example"}, Headers: headers}},
		{arguments{"headers": arguments{}, "network": "open"}, sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}},
		{arguments{"headers": []string{"api.example/x-org=acme"}, "network": "open"}, sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, Headers: headers}},
		{arguments{"network": "off"}, sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}},
	} {
		c.args["sandbox"] = "box"
		ok(t, s, "update_sandbox", c.args)
		if !e.policy.Equal(c.want) {
			t.Errorf("%v: it is %+v, want %+v", c.args, e.policy, c.want)
		}
	}
}

func TestHeadersOfHostsThatAreRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	e := &updated{&connected{Engine: h.engine, most: sandbox.NetworkOpen, policy: sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}}}
	_, h.url = serve(t, e, h.inside, h.runs, h.code, toolset.GroupManage)
	ok(t, h.alice(), "create_sandbox", arguments{"name": "box"})
	for want, headers := range map[string]any{
		`argument headers "x-team" is not HOST/NAME`:                                    arguments{"x-team": "blue"},
		"argument headers is neither an object of strings":                              "api.example/x-team: blue",
		`argument headers.api.example`:                                                  arguments{"api.example/host": "other.example"},
		"a value with characters that a header cannot have":                             arguments{"api.example/x-team": "blue\r\nhost: other.example"},
		"argument headers.api.example x-team has a value of 1025 bytes, more than 1024": arguments{"api.example/x-team": strings.Repeat("a", 1025)},
		`argument headers.api.example has "x-team" twice`:                               arguments{"api.example/x-team": "a", "api.example/X-TEAM": "b"},
		"argument headers.api.example is there twice, in two spellings":                 arguments{"api.example/x-team": "a", "API.example/x-org": "b"},
		`the value of "api.example/x-team" is not a string`:                             arguments{"api.example/x-team": []string{"a"}},
	} {
		h.wrong(t, "update_sandbox", arguments{"sandbox": "box", "headers": headers}, "error (invalid)", want)
	}
	if len(e.policy.Headers) > 0 {
		t.Errorf("some were set: %v", e.policy.Headers)
	}
	h.wrong(t, "update_sandbox", arguments{"sandbox": "box", "network": "off", "headers": arguments{"api.example/x-team": "blue"}}, "means nothing in mode off")
}

func TestAnswersNameSecretsAndNeverTellTheirValues(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupState)
	s := h.alice()
	admin := access.Caller{Project: "default", Actor: "root", Scopes: []access.Scope{access.ServerAdmin}}
	const value = "a-value-that-nobody-shows"
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	for _, one := range []struct {
		ref string
		r   secrets.Request
	}{
		{"", secrets.Request{Name: "API_KEY", Value: value, Hosts: []string{"api.example"}}},
		{"box", secrets.Request{Name: "PASSWORD", Value: value}},
	} {
		if _, err := secrets.NewService(h.engine).SetSecret(t.Context(), admin, one.ref, one.r); err != nil {
			t.Fatal(err)
		}
	}
	for tool, args := range map[string]arguments{
		"create_sandbox": {"name": "box"}, "list_sandboxes": nil, "get_sandbox_limits": {"sandbox": "box"}, "pause_sandbox": {"sandbox": "box"},
	} {
		res := call(t, s, tool, args)
		got := text(t, res)
		if !strings.Contains(got, "secrets API_KEY, PASSWORD") && tool != "pause_sandbox" {
			t.Errorf("%s names no secrets: %s", tool, got)
		}
		data := string(jsonOf(t, res))
		if !strings.Contains(data, `"secrets":["API_KEY","PASSWORD"]`) || strings.Contains(data, value) {
			t.Errorf("%s: %s", tool, data)
		}
	}
	if got := string(jsonOf(t, call(t, h.session("t-stranger", handshake, nil), "create_sandbox", arguments{"name": "box"}))); strings.Contains(got, "API_KEY") {
		t.Errorf("another project's: %s", got)
	}
}
