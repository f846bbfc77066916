// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/issuer"
	"sandpit.dev/api/guard"
)

// issued is a server with an external issuer, whose words for scopes are its own.
type issued struct {
	t   *testing.T
	url string
	own string // the server's own admin token
	by  *signer
}

func newIssued(t *testing.T) *issued {
	t.Helper()
	s, i := newSigner(t), newInstallation(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	i.cfg.Issuers = []issuer.Config{{
		URL: s.URL, Audience: "https://box.example.org", ProjectClaim: "project", CAFile: ca,
		Scopes: map[string][]access.Scope{"boss": {access.Admin}, "reader": {access.SandboxesRead}, "user": {access.SandboxesRead, access.SandboxesWrite}},
	}}
	url, stop, err := i.start(Adopt{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	own, err := os.ReadFile(filepath.Join(i.cfg.Data, "admin-token"))
	if err != nil {
		t.Fatal(err)
	}
	return &issued{t, url, strings.TrimSpace(string(own)), s}
}

// token is one of the issuer's, for a project.
func (i *issued) token(project, scope string) string {
	return i.by.token(i.t, map[string]any{
		"iss": i.by.URL, "sub": "alice", "aud": "https://box.example.org", "exp": time.Now().Add(time.Hour).Unix(), "project": project, "scope": scope,
	})
}

// ask sends a request; headers come in pairs.
func (i *issued) ask(method, path, token, body string, headers ...string) (*http.Response, string) {
	i.t.Helper()
	req, err := http.NewRequestWithContext(i.t.Context(), method, i.url+path, strings.NewReader(body))
	if err != nil {
		i.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	for n := 0; n < len(headers); n += 2 {
		req.Header.Add(headers[n], headers[n+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		i.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		i.t.Fatal(err)
	}
	return resp, string(text)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// call calls a tool in a session of its own.
func (i *issued) call(token, tool, arguments string, headers ...string) (*http.Response, string) {
	i.t.Helper()
	resp, text := i.ask("POST", "/mcp", token, initialize, headers...)
	session := resp.Header.Get("Mcp-Session-Id")
	if resp.StatusCode != 200 || session == "" {
		return resp, text
	}
	return i.ask("POST", "/mcp", token, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+arguments+`}}`,
		append([]string{"Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-06-18"}, headers...)...)
}

func TestARequestNamesAProjectWithATokenOfAnIssuerAndOverMCP(t *testing.T) {
	i := newIssued(t)
	alice := i.token("team-a", "user")
	for _, name := range []string{"team-a", "team-b"} {
		if resp, text := i.ask("POST", "/v1/projects", i.own, `{"name":"`+name+`","quotas":{"sandboxes":7}}`); resp.StatusCode != 201 {
			t.Fatalf("%s: %s %s", name, resp.Status, text)
		}
	}
	for _, c := range []struct {
		name, token string
		headers     []string
		status      int
		project     string
	}{
		{"ItsOwn", alice, []string{guard.ProjectHeader, "team-a"}, 200, "team-a"},
		{"AnothersOfAnIssuers", alice, []string{guard.ProjectHeader, "team-b"}, 403, ""},
		{"OneThatThereIsNotOfAnIssuers", alice, []string{guard.ProjectHeader, "team-c"}, 403, ""},
		{"AnIssuersBossIsOneOfItsProject", i.token("team-a", "boss"), []string{guard.ProjectHeader, "team-b"}, 403, ""},
		{"Two", alice, []string{guard.ProjectHeader, "team-a", guard.ProjectHeader, "team-b"}, 422, ""},
		{"TheServersOwn", i.own, []string{guard.ProjectHeader, "team-b"}, 200, "team-b"},
		{"TheServersOwnForNone", i.own, []string{guard.ProjectHeader, "team-c"}, 404, ""},
		{"TheServersOwnWithout", i.own, nil, 200, "default"},
	} {
		resp, text := i.ask("GET", "/v1/whoami", c.token, "", c.headers...)
		var who struct{ Project string }
		if err := json.Unmarshal([]byte(text), &who); err != nil || resp.StatusCode != c.status || who.Project != c.project {
			t.Errorf("%s: %s %s", c.name, resp.Status, text)
		}
		if challenge := resp.Header.Get("WWW-Authenticate"); challenge != "" {
			t.Errorf("%s: it is told %s, and no scope would help", c.name, challenge)
		}
		resp, text = i.call(c.token, "get_sandbox_limits", "{}", c.headers...)
		if resp.StatusCode != c.status || c.status == 200 && (!strings.Contains(text, c.project) || c.project != "default" && !strings.Contains(text, "7")) {
			t.Errorf("%s, by MCP: %s %s", c.name, resp.Status, text)
		}
	}
	// A session belongs to its token and not to a project: what it does is for the project that each request names.
	resp, _ := i.ask("POST", "/mcp", i.own, initialize, guard.ProjectHeader, "team-a")
	session := []string{"Mcp-Session-Id", resp.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-06-18", guard.ProjectHeader}
	const limits = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_sandbox_limits","arguments":{}}}`
	if resp, text := i.ask("POST", "/mcp", alice, limits, append(session, "team-a")...); resp.StatusCode == 200 {
		t.Errorf("a session of another's token: %s %s", resp.Status, text)
	}
}

func TestATokenThatLacksAScopeIsToldWhichOne(t *testing.T) {
	i := newIssued(t)
	_, text := i.ask("POST", "/v1/tokens", i.own, `{"name":"own","scopes":["sandboxes:read"]}`)
	var own struct{ Token string }
	if err := json.Unmarshal([]byte(text), &own); err != nil {
		t.Fatal(err, text)
	}
	reader := i.token("team-a", "reader")
	place := func(at string) string {
		return `, resource_metadata="` + i.url + `/.well-known/oauth-protected-resource` + at + `"`
	}
	const lacks = `Bearer realm="sandpit", error="insufficient_scope"`
	for _, c := range []struct{ name, token, method, path, body, want string }{
		{"ToWrite", reader, "POST", "/v1/sandboxes", "{}", lacks + `, scope="reader user"` + place("")},
		{"ToManage", reader, "POST", "/v1/tokens", `{"name":"x"}`, lacks + `, scope="reader boss"` + place("")},
		{"WhatNoIssuerGives", reader, "GET", "/metrics", "", lacks + place("")},
		{"OfThisServer", own.Token, "POST", "/v1/sandboxes", "{}", lacks + `, scope="sandboxes:read sandboxes:write"` + place("")},
		{"AnotherCoat", reader, "GET", "/api/v1/settings/sandbox", "", lacks + place("")},
	} {
		if resp, text := i.ask(c.method, c.path, c.token, c.body); resp.StatusCode != 403 || resp.Header.Get("WWW-Authenticate") != c.want {
			t.Errorf("%s: %s %q %s\nwant %q", c.name, resp.Status, resp.Header.Get("WWW-Authenticate"), text, c.want)
		}
	}
	for name, headers := range map[string][]string{"AnotherProject": {guard.ProjectHeader, "team-b"}, "AnotherOrigin": {"Origin", "https://evil.example"}} {
		if resp, text := i.ask("GET", "/v1/sandboxes", reader, "", headers...); resp.StatusCode != 403 || resp.Header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s: %s %v %s", name, resp.Status, resp.Header, text)
		}
	}

	t.Run("OverMCP", func(t *testing.T) {
		want := lacks + `, scope="reader user"` + place("/mcp")
		resp, text := i.call(reader, "run_command", `{"command":"true"}`)
		if resp.StatusCode != 403 || resp.Header.Get("WWW-Authenticate") != want || !strings.Contains(text, `"id":2`) || !strings.Contains(text, "sandboxes:write") {
			t.Errorf("in a session: %s %q %s", resp.Status, resp.Header.Get("WWW-Authenticate"), text)
		}
		modern := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "run_command"}
		resp, text = i.ask("POST", "/mcp", reader, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_command","arguments":{"command":"true"}}}`, modern...)
		if resp.StatusCode != 403 || resp.Header.Get("WWW-Authenticate") != want {
			t.Errorf("without sessions: %s %q %s", resp.Status, resp.Header.Get("WWW-Authenticate"), text)
		}
		// A tool that only reads asks for that scope.
		none := i.token("team-a", "nothing")
		if resp, text := i.call(none, "list_sandboxes", `{}`); resp.StatusCode != 403 || resp.Header.Get("WWW-Authenticate") != lacks+`, scope="reader"`+place("/mcp") || !strings.Contains(text, "sandboxes:read") {
			t.Errorf("a reading tool: %s %q %s", resp.Status, resp.Header.Get("WWW-Authenticate"), text)
		}
		// Of a batch, which versions before 2025-06-18 have, nothing is done.
		opened, _ := i.ask("POST", "/mcp", reader, strings.Replace(initialize, "2025-06-18", "2025-03-26", 1))
		session := []string{"Mcp-Session-Id", opened.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-03-26"}
		const reads, writes = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_sandboxes","arguments":{}}}`, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"run_command","arguments":{"command":"true"}}}`
		for body, id := range map[string]string{"[" + reads + "," + writes + "]": `"id":4`, " \n[" + writes + "]": `"id":4`} {
			if resp, text := i.ask("POST", "/mcp", reader, body, session...); resp.StatusCode != 403 || resp.Header.Get("WWW-Authenticate") != want || !strings.Contains(text, id) {
				t.Errorf("%s: %s %q %s", body, resp.Status, resp.Header.Get("WWW-Authenticate"), text)
			}
		}
		if resp, text := i.ask("POST", "/mcp", reader, "["+reads+"]", session...); resp.StatusCode != 200 || !strings.Contains(text, `"id":3`) {
			t.Errorf("a batch that may be done: %s %s", resp.Status, text)
		}
		if resp, text := i.ask("POST", "/mcp", reader, "["+reads+",", session...); resp.StatusCode != 400 {
			t.Errorf("half a batch: %s %s", resp.Status, text)
		}
		for name, token := range map[string]string{"list_sandboxes": reader, "no_such_tool": reader, "run_command": own.Token} {
			// A token of this server's has nobody to be asked for more: the model is told by the tool.
			if resp, text := i.call(token, name, `{}`); resp.StatusCode != 200 || name == "run_command" && !strings.Contains(text, "sandboxes:write") {
				t.Errorf("%s: %s %s", name, resp.Status, text)
			}
		}
	})
	t.Run("OverSSE", func(t *testing.T) {
		// A message's answer is 202 there, before anybody has read it: the tool says what lacks.
		req, err := http.NewRequestWithContext(t.Context(), "GET", i.url+"/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Authorization", "Bearer "+reader)
		stream, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = stream.Body.Close() }()
		events := bufio.NewScanner(stream.Body)
		next := func() string {
			for events.Scan() {
				if data, ok := strings.CutPrefix(events.Text(), "data: "); ok {
					return data
				}
			}
			t.Fatalf("the stream ended: %v", events.Err())
			return ""
		}
		at := next()
		for _, body := range []string{initialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_command","arguments":{"command":"true"}}}`} {
			if resp, text := i.ask("POST", at, reader, body); resp.StatusCode != 202 {
				t.Fatalf("%s: %s %s", body, resp.Status, text)
			}
		}
		for {
			if text := next(); strings.Contains(text, `"id":2`) {
				if !strings.Contains(text, `"isError":true`) || !strings.Contains(text, "sandboxes:write") {
					t.Errorf("got %s", text)
				}
				return
			}
		}
	})
	t.Run("TheMetadataHasTheIssuersWords", func(t *testing.T) {
		_, text := i.ask("GET", guard.MetadataPath, "", "")
		var doc struct {
			Scopes []string `json:"scopes_supported"`
		}
		if err := json.Unmarshal([]byte(text), &doc); err != nil || strings.Join(doc.Scopes, " ") != "reader user boss" {
			t.Errorf("%v %s", err, text)
		}
	})
}
