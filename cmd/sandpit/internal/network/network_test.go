// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
)

func TestWhatMayBeReachedIsReadOfFlags(t *testing.T) {
	for _, tc := range []struct {
		name, mode string
		flags      []string
		want       any
	}{
		{"Nothing", "", nil, nil},
		{"AMode", "open", nil, v1.NetworkPolicy{Mode: "open"}},
		{
			"AnyOfThemInOneList", "", []string{"--allow", "python,example.org,*.example.net", "--allow", "192.0.2.0/24,192.0.2.7,2001:db8::1,printer."},
			v1.NetworkPolicy{
				Mode: "restricted", AllowPresets: []string{"python"}, AllowDomains: []string{"example.org", "*.example.net", "printer."},
				AllowCIDRs: []string{"192.0.2.0/24", "192.0.2.7", "2001:db8::1"},
			},
		},
		{
			"HeadersOfHosts", "open", []string{"--host-header", "a.example=X-A:b=c:d, e", "--host-header", "a.example=x-b: f", "--host-header", "nothing"},
			v1.NetworkPolicy{Mode: "open", Headers: map[string]map[string]string{"a.example": {"X-A": "b=c:d, e", "x-b": "f"}, "nothing": {"": ""}}},
		},
		{
			"BesideLists", "restricted", []string{"--allow", "node", "--allow-domain", "python"},
			v1.NetworkPolicy{Mode: "restricted", AllowPresets: []string{"node"}, AllowDomains: []string{"python"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &cobra.Command{}
			r := ReachFlags(new(app.App), c)
			if err := c.ParseFlags(tc.flags); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, r.Policy(tc.mode)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
