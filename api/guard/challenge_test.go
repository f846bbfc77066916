// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/fault"
)

func TestARefusalForAScopeSaysWhichOne(t *testing.T) {
	t.Parallel()
	var refuse error
	read, tools := []access.Scope{access.SandboxesRead}, []access.Scope{access.SandboxesRead, access.ToolsCore}
	words := map[access.Scope]string{access.SandboxesRead: "reader", access.SandboxesWrite: "user", access.Admin: `the "boss"`}
	tokens := known{
		"own":    {Project: "red", Actor: "own", Scopes: read},
		"mapped": {Project: "red", Actor: "jwt:a", Scopes: tools, Issuer: "https://login.example.org", Words: words},
	}
	site := func(resources ...string) http.Handler {
		g, err := guard.New(guard.Options{Tokens: tokens, Resources: resources})
		if err != nil {
			t.Fatal(err)
		}
		return g.Wrap("rest", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := guard.Caller(r.Context()); err != nil {
				t.Error(err)
			}
			guard.Error(w, r, refuse)
		}))
	}
	alone, issued := site(), site("/mcp")
	const place = `, resource_metadata="http://127.0.0.1:8080/.well-known/oauth-protected-resource/mcp"`
	for _, c := range []struct {
		name, token string
		site        http.Handler
		err         error
		status      int
		want        string
	}{
		{"AScope", "own", alone, access.Caller{}.Require(access.SandboxesWrite), 403, `Bearer realm="sandpit", error="insufficient_scope", scope="sandboxes:read sandboxes:write"`},
		{"WhereThereAreIssuers", "own", issued, access.Caller{}.Require(access.Admin), 403, `Bearer realm="sandpit", error="insufficient_scope", scope="sandboxes:read admin"` + place},
		{"BehindAnotherRefusal", "own", alone, fault.Wrap(fault.Denied, access.Caller{}.Require(access.SandboxesWrite), "not yours"), 403, `Bearer realm="sandpit", error="insufficient_scope", scope="sandboxes:read sandboxes:write"`},
		{"AsItsIssuerCallsIt", "mapped", issued, access.Caller{}.Require(access.SandboxesWrite), 403, `Bearer realm="sandpit", error="insufficient_scope", scope="reader user"` + place},
		{"WhatItsIssuerDoesNotGive", "mapped", issued, access.Caller{}.Require(access.ToolsFiles), 403, `Bearer realm="sandpit", error="insufficient_scope"` + place},
		{"AWordThatNoHeaderCanHave", "mapped", issued, access.Caller{}.Require(access.Admin), 403, `Bearer realm="sandpit", error="insufficient_scope"` + place},
		{"WhatNobodyGives", "own", alone, access.Caller{}.Require(access.ServerAdmin), 403, `Bearer realm="sandpit", error="insufficient_scope"`},
		{"NoScope", "own", issued, fault.New(fault.Denied, "the file is the kernel's"), 403, ""},
		{"ACauseIsNotTheAnswer", "own", issued, fault.Wrap(fault.NotFound, access.Caller{}.Require(access.Admin), "there is none"), 404, ""},
		{"NoToken", "nobody's", issued, nil, 401, `Bearer realm="sandpit", error="invalid_token"` + place},
		{"NoTokenWithoutIssuers", "nobody's", alone, nil, 401, `Bearer realm="sandpit"`},
	} {
		refuse = c.err
		r := httptest.NewRequest("POST", "http://127.0.0.1:8080/mcp", nil)
		r.Header.Set("Authorization", "Bearer "+c.token)
		w := httptest.NewRecorder()
		c.site.ServeHTTP(w, r)
		if got := w.Header().Get("WWW-Authenticate"); w.Code != c.status || got != c.want {
			t.Errorf("%s: %d %s\nwant %d %s", c.name, w.Code, got, c.status, c.want)
		}
	}
}
