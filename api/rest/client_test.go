// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	callers "sandpit.dev/access/seen"
	"sandpit.dev/api/rest"
	"sandpit.dev/api/rest/clients"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/mcpsetup"
)

func TestHowClientsAreToldOfTheServer(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *rest.Options) { o.Clients = clients.API{Profiles: []string{"sandpit", "daytona"}} })
	list := want[v1.ClientSetupList](h.as("a", access.SandboxesRead), 200, "GET", "/v1/clients", nil)
	if list.URL != h.url+"/mcp" || len(list.Items) != len(mcpsetup.Clients()) || list.TokenVariable != mcpsetup.TokenVar {
		t.Errorf("got %+v", list)
	}
	for _, c := range list.Items {
		if strings.Contains(c.Snippet, list.Placeholder) != (c.Token == mcpsetup.TokenWritten) || strings.Contains(c.Command+c.Link, list.Placeholder) {
			t.Errorf("%s: its token is %s, and %s %s %s", c.ID, c.Token, c.Snippet, c.Command, c.Link)
		}
	}
	written := want[v1.ClientSetupList](h, 200, "GET", "/v1/clients?written=true&profile=daytona", nil)
	for _, c := range written.Items {
		if !strings.Contains(c.Snippet, h.url+"/mcp/daytona") || c.Token != mcpsetup.TokenAsked && !strings.Contains(c.Snippet, written.Placeholder) {
			t.Errorf("%s is told %s", c.ID, c.Snippet)
		}
	}
	for _, wrong := range []string{"none", "../x", "<b>", "sandpit\x00", strings.Repeat("x", 5000)} {
		if a := h.do("GET", "/v1/clients?profile="+url.QueryEscape(wrong), nil); a.StatusCode != 422 && a.StatusCode != 400 || strings.Contains(string(a.body), strings.Repeat("x", 500)) {
			t.Errorf("the profile %.20q: got %d %s", wrong, a.StatusCode, a.body)
		}
	}
	if a := h.do("GET", "/v1/clients/seen", nil); a.StatusCode != 501 {
		t.Errorf("where nobody remembers: got %d %s", a.StatusCode, a.body)
	}
}

func TestWhoCalledByMCP(t *testing.T) {
	t.Parallel()
	log := new(callers.Log)
	h := open(t, func(o *rest.Options) { o.Clients.Seen = log })
	read := h.as("a", access.SandboxesRead)
	who := want[v1.Whoami](read, 200, "GET", "/v1/whoami", nil)
	log.Add(access.Caller{Project: "a", TokenID: *who.TokenID, Actor: who.Name}, &callers.Message{Name: "cursor", Version: "1.0", Method: "tools/list", Listed: 16}, time.Now())
	log.Add(access.Caller{Project: "a", TokenID: "other", Actor: "other"}, &callers.Message{Name: "cline", Method: "initialize", Listed: -1}, time.Now())
	log.Add(access.Caller{Project: "b", TokenID: "third", Actor: "third"}, &callers.Message{Name: "zed", Method: "initialize", Listed: -1}, time.Now())
	for _, c := range []struct {
		h    *house
		want string
	}{{read, "cursor"}, {h.as("a", access.SandboxesRead), ""}, {h.as("a", access.Admin), "cline cursor"}, {h.as("c", access.Admin), ""}, {h, "zed cline cursor"}} {
		var names []string
		for _, one := range want[v1.SeenClientList](c.h, 200, "GET", "/v1/clients/seen", nil).Items {
			names = append(names, one.Name)
			if one.Name == "cursor" && (one.Listed != 16 || one.ListedAt == nil || one.TokenID == nil || *one.TokenID != *who.TokenID) {
				t.Errorf("got %+v", one)
			}
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("seen is %q, not %q", got, c.want)
		}
	}
}
