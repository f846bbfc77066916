// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"slices"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
)

// tried is a call of a tool.
type tried struct {
	tool string
	args arguments
}

// inItsSandbox are calls that a token of one sandbox can make there.
func inItsSandbox() []tried {
	return []tried{
		{"run_command", arguments{"command": "echo inside"}},
		{"write_file", arguments{"path": "a.txt", "content": "inside"}},
		{"read_file", arguments{"path": "a.txt"}},
		{"list_files", arguments{}},
		{"list_processes", arguments{}},
	}
}

// TestATokenOfOneSandboxHasToolsThereAlone calls every tool with such a token: where it names no sandbox it works in
// its own, another one is not there, and what is of the project is refused.
func TestATokenOfOneSandboxHasToolsThereAlone(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.Groups()...)
	admin := access.Caller{Project: "default", Actor: "alice", Scopes: []access.Scope{access.Admin}}
	create := func(key string) string {
		s, _, err := h.engine.Create(t.Context(), admin, engine.CreateRequest{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		return string(s.ID)
	}
	own, other := create("own"), create("other")
	caged := h.session("t-caged-"+own, handshake, nil)
	for _, c := range inItsSandbox() {
		if res := call(t, caged, c.tool, c.args); res.IsError {
			t.Errorf("%s: %s", c.tool, text(t, res))
		}
	}
	s, err := h.engine.Get(t.Context(), admin, other)
	if err != nil {
		t.Fatal(err)
	}
	// Arguments that are right for every tool that looks at them; those that lack one are refused for that.
	const some = "x"
	made, refused := 0, 0
	for _, tool := range listed(t, caged).Tools {
		for _, place := range []string{other, "other", "new"} {
			args := arguments{"sandbox": place, "command": "echo stolen > stolen", "path": "stolen", "content": "stolen", "code": "1", "name": some, "port": 80, "snapshot": some, "volume": some, "url": "https://git.example/a.git", "message": some, "pattern": some}
			res := call(t, caged, tool.Name, args)
			made++
			if res.IsError {
				refused++
			} else if body := text(t, res); strings.Contains(body, other) || !slices.Contains([]string{"get_sandbox_limits"}, tool.Name) {
				t.Errorf("%s of %s: %s", tool.Name, place, body)
			}
		}
	}
	t.Logf("%d calls of %d were refused", refused, made)
	for _, tool := range []string{"create_sandbox", "list_sandboxes", "list_images", "list_snapshots", "list_volumes", "fork_sandbox", "delete_sandbox", "update_sandbox", "list_secrets"} {
		args := arguments{}
		if tool == "fork_sandbox" || tool == "delete_sandbox" || tool == "update_sandbox" {
			args["sandbox"] = own
		}
		if res := call(t, caged, tool, args); !res.IsError {
			t.Errorf("%s: %s", tool, text(t, res))
		}
	}
	after, err := h.engine.Get(t.Context(), admin, other)
	if err != nil || after.Revision != s.Revision || after.ExecCount != s.ExecCount {
		t.Errorf("the other sandbox is %+v, and was %+v (%v)", after, s, err)
	}
}
