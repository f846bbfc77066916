// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/access/seen"
	"sandpit.dev/api/mcp"
	"sandpit.dev/api/service"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/skills"
)

func TestWhoCallsIsRemembered(t *testing.T) {
	t.Parallel()
	for _, version := range []string{handshake, stateless} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			h, log := open(t), new(seen.Log)
			_, h.url = serveWith(t, mcp.Options{Seen: log, Services: service.Of(h.engine, h.inside, ports.New(h.engine), h.code, h.runs, deskOf(h.engine), skills.New(h.engine, skills.Options{}))})
			s := h.session("t-alice", version, nil)
			list, err := s.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			all := log.List(access.Caller{Scopes: []access.Scope{access.ServerAdmin}})
			if len(all) != 1 || all[0].Name == "" || all[0].Protocol != version || all[0].Listed != len(list.Tools) || all[0].LastMethod != "tools/list" || all[0].Calls != 0 {
				t.Fatalf("of a client that was told of %d tools there is %+v", len(list.Tools), all)
			}
			if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_sandboxes"}); err != nil {
				t.Fatal(err)
			}
			now := log.List(access.Caller{Scopes: []access.Scope{access.ServerAdmin}})
			if len(now) != 1 || now[0].LastTool != "list_sandboxes" || now[0].Calls != 1 || now[0].Listed != len(list.Tools) || now[0].Messages <= all[0].Messages {
				t.Errorf("after a call there is %+v", now)
			}
			if resp, _ := h.post("t-nobody", "", initialize, nil); resp.StatusCode != 401 || len(log.List(access.Caller{Scopes: []access.Scope{access.ServerAdmin}})) != 1 {
				t.Errorf("without a token: %d, and who called is %+v", resp.StatusCode, log.List(access.Caller{Scopes: []access.Scope{access.ServerAdmin}}))
			}
		})
	}
}
