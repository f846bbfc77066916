// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"strings"
	"testing"
)

func TestAnAgentAsksForANetwork(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	res := call(t, s, "request_network", arguments{"allow": "github, Own.example", "reason": "to clone \x1b[2J"})
	got := structured[struct {
		State string
		ID    string `json:"request_id"`
		Line  string `json:"user_types"`
	}](t, res)
	if got.State != "pending" || got.ID == "" || got.Line != "sandpit network grant "+got.ID {
		t.Errorf("got %+v", got)
	}
	shown := text(t, res)
	wantParts(t, shown, "not granted yet: the user has to allow sandbox default-alice to reach github, own.example", "the user types: "+got.Line, "the presets stand for github.com")
	if strings.Contains(shown, "\x1b") {
		t.Errorf("its own words come back: %q", shown)
	}
	h.wrong(t, "request_network", arguments{"allow": "*.example.org"}, "exact name")
	h.wrong(t, "request_network", arguments{"allow": "pyhton"}, "not a preset of this server")
	h.wrong(t, "request_network", arguments{"allow": " , "}, "is empty")
	for _, name := range toolNames(listed(t, s)) {
		if strings.Contains(name, "grant") {
			t.Errorf("the tool %s grants", name)
		}
	}
}
