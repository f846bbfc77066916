// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"slices"
	"testing"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/sandbox"
)

// A policy that an answer has means the same when it is sent back: what an image says does not become
// the caller's word, for which the operator's ranges count.
func TestAnAnsweredPolicyMeansTheSameSentBack(t *testing.T) {
	text, err := json.Marshal(policyOf(sandbox.NetworkPolicy{
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
