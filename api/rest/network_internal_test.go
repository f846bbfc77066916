// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"slices"
	"testing"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/shape"
	"sandpit.dev/sandbox"
)

// A policy that an answer has means the same when it is sent back: what an image says does not become
// the caller's word, for which the operator's ranges count.
func TestAnAnsweredPolicyMeansTheSameSentBack(t *testing.T) {
	text, err := json.Marshal(shape.Policy(sandbox.NetworkPolicy{
		Mode: sandbox.NetworkRestricted, AllowDomains: []string{"own.test", "image.test", "gone.test"}, AllowPresets: []string{"python"},
		PresetDomains: []sandbox.PresetDomain{{Preset: "python", Domain: "image.test", Source: sandbox.PresetFromImage}, {Preset: "other", Domain: "gone.test", Source: sandbox.PresetFromHost}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	// What a preset stood for that is not asked for again stays as a name.
	p := networkObject(&httpapi.Spellings{}, v)
	if want := []string{"own.test", "gone.test"}; !slices.Equal(p.AllowDomains, want) || !slices.Equal(p.AllowPresets, []string{"python"}) || p.PresetDomains != nil {
		t.Errorf("%+v, want the names %q", p, want)
	}
}

func TestListsOfWhatIsDenied(t *testing.T) {
	read := func(text string) (*sandbox.NetworkPolicy, error) {
		var v map[string]any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		var sp httpapi.Spellings
		p := networkObject(&sp, v)
		if err := sp.Err(); err != nil {
			return nil, err
		}
		normal, err := p.Normal()
		return &normal, err
	}
	p, err := read(`{"deny_domains": ["Evil.example", "*.bad.example"], "deny_cidrs": ["192.0.2.7/24", "2001:db8::1"], "allow_domains": ["good.bad.example"]}`)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(shape.Policy(*p))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"mode":"open","allow_domains":["good.bad.example"],"deny_domains":["evil.example","*.bad.example"],"deny_cidrs":["192.0.2.0/24","2001:db8::1/128"]}`
	if string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
	if again, err := read(string(text)); err != nil || !again.Equal(*p) {
		t.Errorf("sent back it is %+v, %v", again, err)
	}
	for _, bad := range []string{
		`{"mode": "restricted", "allow_domains": ["a.example"], "deny_domains": ["b.example"]}`,
		`{"mode": "off", "deny_cidrs": ["192.0.2.0/24"]}`,
		`{"mode": "open", "allow_domains": ["a.example"]}`,
		`{"mode": "open", "deny_domains": ["b.example"], "allow_cidrs": ["192.0.2.0/24"]}`,
		`{"mode": "open", "deny_domains": ["b.example"], "learn": true}`,
		`{"mode": "open", "deny_domains": ["192.0.2.1"]}`,
		`{"mode": "open", "deny_domains": ["*."]}`,
		`{"mode": "open", "deny_domains": "b.example"}`,
		`{"mode": "open", "deny_cidrs": ["b.example"]}`,
	} {
		if p, err := read(bad); err == nil {
			t.Errorf("%s is %+v", bad, p)
		}
	}
}
