// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp"
	"sandpit.dev/api/mcp/profile/orkestr"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/service"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/ports"
)

// A model makes a template, sandboxes of it, and learns what is not ready. Seed 2's tool takes one, too.
func TestTemplates(t *testing.T) {
	t.Parallel()
	s := enginetest.Start(t, t.TempDir())
	h := &house{t: t, engine: s.Engine, inside: s.Files, runs: s.Runs, code: s.Code, store: s.Store, http: client(t)}
	services := service.Of(s.Creator, s.Files, ports.New(s.Engine), s.Code, s.Runs, deskOf(s.Engine), skillsOf(s.Engine))
	services.Templates = s.Creator.Templates
	h.handler, h.url = serveWith(t, mcp.Options{Services: services, Version: "test", Groups: []string{toolset.GroupCore, toolset.GroupManage, toolset.GroupInspect}})
	session := h.session("t-alice", handshake, nil)
	call := func(name string, args map[string]any, parts ...string) {
		t.Helper()
		res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, c := range res.Content {
			if c, ok := c.(*sdk.TextContent); ok {
				text += c.Text
			}
		}
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s %v: no %q in %s", name, args, part, text)
			}
		}
	}
	call("create_template", map[string]any{"name": "web", "image": "node", "start": "echo up; exec sleep 1000"}, "created template web@1")
	call("create_template", map[string]any{"name": "web", "image": "node", "start": "echo up; exec sleep 1000"}, "is there already")
	call("create_template", map[string]any{"name": "bad", "start": "echo no; exit 3", "ready_port": 1}, "created template bad@1")
	call("create_template", map[string]any{"name": "../x"}, "is not a valid name of a template")
	call("list_templates", nil, "2 templates", "web@1 · ready · of node")
	call("create_sandbox", map[string]any{"name": "a", "template": "web"}, "created sandbox a")
	call("get_sandbox", map[string]any{"sandbox": "a"}, "node")
	call("create_sandbox", map[string]any{"template": "bad"}, "created sandbox", "not ready: the start command ended with exit code 3")
	call("create_sandbox", map[string]any{"template": "nothing"}, "no template and no image")
	call("create_sandbox", map[string]any{"template": "node"}, "created sandbox")

	h.handler, h.url = serveWith(t, mcp.Options{Services: services, Version: "test", Profile: orkestr.Name})
	session = h.session("t-alice", handshake, nil)
	call("create_sandbox", map[string]any{"template": "web@1"}, "web")
	session = h.session("t-stranger", handshake, nil)
	call("create_sandbox", map[string]any{"template": "web"}, "no template and no image")
}
