// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"sandpit.dev/test/browser"
)

// signedIn opens the console as the server's administrator.
func (s *server) signedIn(t *testing.T, p browser.Program) *person {
	t.Helper()
	one := visit(t, p, s.url+"/console/")
	one.reads("Sign in")
	one.fills("Token", s.token)
	one.presses("Sign in")
	one.reads("Sandboxes")
	one.take() // nobody was signed in at first
	return one
}

// chooses selects in the list with a label.
func (p *person) chooses(label, value string) {
	p.t.Helper()
	find := "[...document.querySelectorAll('label')].filter(l => l.innerText.trim().startsWith(" + quoted(label) + ")).map(l => l.control ?? l.querySelector('select'))[0]"
	p.until("there is a list "+label, "%s", find)
	await[bool](p.t, p.tab, "(i => { i.value = %q; i.dispatchEvent(new Event('change', {bubbles: true})); return true })(%s)", value, find)
}

func quoted(text string) string {
	b, _ := json.Marshal(text) // a string always can
	return string(b)
}

// message sends a message of MCP, as a client does.
func (s *server) message(t *testing.T, token, session, body string) (string, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil || w.StatusCode >= 300 {
		t.Fatalf("got %d %s %v", w.StatusCode, text, err)
	}
	return w.Header.Get("Mcp-Session-Id"), string(text)
}

// reader makes a token that may only read, and returns it.
func (s *server) reader(t *testing.T) string {
	t.Helper()
	var made struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(s.do(t, "token", "create", "--name", "reader", "--scope", "sandboxes:read", "-o", "json")), &made); err != nil {
		t.Fatal(err)
	}
	return made.Token
}

func TestAClientIsConnected(t *testing.T) {
	p := needBrowser(t)
	s := serve(t, "")
	one := s.signedIn(t, p)
	one.presses("Connect")
	one.reads("sandpit mcp config claude-code")
	one.picture("connect-empty")
	one.presses("Claude Code")
	one.reads("claude mcp add")
	if at := await[string](t, one.tab, "location.href"); !strings.HasSuffix(at, "/console/connect?client=claude-code") {
		t.Errorf("the page's address is %s", at)
	}
	one.fills("Name", "desk")
	one.presses("Make the token")
	one.until("it is shown", "document.querySelector('pre[aria-label=\"The token\"]')?.innerText.startsWith('spt_')")
	token := await[string](t, one.tab, "document.querySelector('pre[aria-label=\"The token\"]').innerText")
	one.reads("export SANDPIT_TOKEN=" + token)
	if got := s.do(t, "token", "ls"); !strings.Contains(got, "desk") {
		t.Errorf("the tokens: %s", got)
	}
	one.reads("Waiting for the first call by desk")
	one.picture("connect-waits")
	session, _ := s.message(t, token, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"claude-code","title":"Claude <b>Code</b>\u202e","version":"2.1"}}}`)
	one.reads("Claude <b>Code</b>⟨202e⟩ 2.1 connected")
	s.message(t, token, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	_, list := s.message(t, token, session, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if !strings.Contains(list, "run_command") {
		t.Fatalf("the tools: %s", list)
	}
	one.until("it is seen to list", "/2\\.1 listed [0-9]{2} tools (now|[0-9]+ s ago)/.test(document.querySelector('.first').innerText)")
	one.picture("connect-seen")
	if got := s.do(t, "mcp", "clients"); !strings.Contains(got, "claude-code") || !strings.Contains(got, "tools/list") || !strings.Contains(got, "desk") {
		t.Errorf("by the command line: %s", got)
	}
	for _, c := range []struct{ client, has string }{{"VS Code", "give it the token when it asks"}, {"Claude Desktop", "which may do everything"}, {"Codex", "bearer_token_env_var"}} {
		one.presses(c.client)
		one.reads(c.has)
	}
	one.presses("Claude Desktop")
	one.until("the token is written", "(b => { if (b && !b.checked) b.click(); return document.querySelector('pre[aria-label^=\"What the file\"]')?.innerText.includes(%q) })(document.querySelector('main input[type=checkbox]'))", token)
	if got := await[string](t, one.tab, "location.href + JSON.stringify(localStorage) + JSON.stringify(sessionStorage) + JSON.stringify(history.state)"); strings.Contains(got, token) {
		t.Errorf("the token is in %s", got)
	}
	one.presses("Audit")
	one.presses("Connect")
	if got := await[string](t, one.tab, "document.body.innerText"); strings.Contains(got, token) {
		t.Error("the token is shown once more")
	}
	for _, c := range one.take() {
		t.Errorf("the browser says: %s", c)
	}

	reader := visit(t, p, s.url+"/console/connect?client=codex")
	reader.fills("Token", s.reader(t))
	reader.presses("Sign in")
	reader.reads("makes no others")
	reader.reads("Nobody yet by your token")
	if got := await[string](t, reader.tab, "document.querySelector('main').innerText"); strings.Contains(got, "Make the token") || strings.Contains(got, "desk") {
		t.Errorf("a token that only reads sees %s", got)
	}
}
