// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"strings"
	"testing"
)

// A call of a tool that is not here says what to do.
func TestAToolThatIsNotHere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		groups       []string
		tool         string
		wants, lacks []string
	}{
		"ItsGroupIsOff":       {nil, "run_sandbox", []string{`unknown tool "run_sandbox"`, "the group runs is switched off", "mcp.groups: [runs]", "SANDPIT_MCP_GROUPS=runs"}, nil},
		"ItsGroupWasSwitched": {[]string{"-state"}, "pause_sandbox", []string{"the group state is switched off", "SANDPIT_MCP_GROUPS=state"}, nil},
		"Misspelled":          {nil, "list_sandbox", []string{`unknown tool "list_sandbox"; did you mean list_sandboxes?`}, []string{"group"}},
		"Nothing":             {nil, "teleport", []string{`unknown tool "teleport"`}, []string{"did you mean", "group"}},
		"VeryLong":            {nil, strings.Repeat("x", 10_000), []string{"unknown tool"}, []string{strings.Repeat("x", 200)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openWith(t, c.groups...).alice().CallTool(t.Context(), toolCall(c.tool))
			if err == nil {
				t.Fatal("it was answered")
			}
			for _, want := range c.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in %v", want, err)
				}
			}
			for _, not := range c.lacks {
				if strings.Contains(err.Error(), not) {
					t.Errorf("%q is in %.300v", not, err)
				}
			}
		})
	}
}
