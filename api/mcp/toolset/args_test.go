// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestAListIsAListOrATextWithCommas(t *testing.T) {
	params := []Param{{Name: "hosts", Kind: Text}, {Name: "state", Kind: Text, Enum: []string{"running", "stopped"}}}
	for _, c := range []struct {
		name, args string
		want       []string
		bad        string
	}{
		{"hosts", `{}`, nil, ""},
		{"hosts", `{"hosts": ""}`, nil, ""},
		{"hosts", `{"hosts": "a, b,,c "}`, []string{"a", "b", "c"}, ""},
		{"hosts", `{"hosts": ["a", " b ", ""]}`, []string{"a", "b"}, ""},
		{"hosts", `{"hosts": []}`, nil, ""},
		{"hosts", `{"hosts": ["a,b"]}`, []string{"a,b"}, ""}, // one that has a comma is told where it is read
		{"hosts", `{"hosts": [443, "8000-8010"]}`, []string{"443", "8000-8010"}, ""},
		{"hosts", `{"hosts": 443}`, []string{"443"}, ""},
		{"hosts", `{"hosts": ["a", {"b": 1}]}`, []string{"a"}, "hosts[1]"},
		{"hosts", `{"hosts": {"b": 1}}`, nil, "hosts"},
		{"state", `{"state": ["running", "stopped"]}`, []string{"running", "stopped"}, ""},
		{"state", `{"state": "running,stopped"}`, []string{"running", "stopped"}, ""},
		{"state", `{"state": ["running", "asleep"]}`, []string{"running", "asleep"}, "state"},
	} {
		a := NewArgs(params, json.RawMessage(c.args))
		got := a.List(c.name)
		if !slices.Equal(got, c.want) || (len(a.Bad) > 0) != (c.bad != "") || c.bad != "" && a.Bad[0].Name != c.bad {
			t.Errorf("%s: got %q, %v; want %q, %s", c.args, got, a.Bad, c.want, c.bad)
		}
	}
}
