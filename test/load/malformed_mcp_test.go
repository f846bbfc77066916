// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// unasked are tools that are called with arguments that cannot be right alone, as unsent operations of REST are.
var unasked = []string{"build_image", "create_template", "git_clone"}

// tool is one of those that a server lists.
type tool struct {
	Name        string
	InputSchema map[string]any
}

// dialect is one way to speak MCP: what a conversation's requests have in their heads.
type dialect struct {
	path, session string
	tools         []tool
}

const protocol = "2025-11-25"

// ask posts one message, as a client does that means well, and returns the result and the session.
func (c *campaign) ask(t *testing.T, d *dialect, message string, result any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.h.url+d.path, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if d.session != "" {
		r.Header.Set("Mcp-Session-Id", d.session)
		r.Header.Set("Mcp-Protocol-Version", protocol)
	}
	resp, err := c.h.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("%s: %d %.300s, %v", message, resp.StatusCode, body, err)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		d.session = id
	}
	if result == nil {
		return
	}
	var answer struct{ Result json.RawMessage }
	if _, after, ok := bytes.Cut(body, []byte("data: {")); ok { // an event
		body, _, _ = bytes.Cut(append([]byte("{"), after...), []byte("\n"))
	}
	err = json.Unmarshal(body, &answer)
	if err == nil {
		err = json.Unmarshal(answer.Result, result)
	}
	if err != nil {
		t.Fatalf("%s: %v in %.300s", message, err, body)
	}
}

// converse begins a conversation.
func (c *campaign) converse(t *testing.T, path string) dialect {
	t.Helper()
	d := dialect{path: path}
	c.ask(t, &d, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+protocol+`","capabilities":{},"clientInfo":{"name":"hostile","version":"1"}}}`, nil)
	c.ask(t, &d, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	var listed struct{ Tools []tool }
	c.ask(t, &d, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, &listed)
	d.tools = listed.Tools
	return d
}

func TestMalformedRequestsOfMCP(t *testing.T) {
	h := openOn(t, "127.0.0.1:0", func(string) {})
	h.kill()
	h.env = append(h.env, "SANDPIT_MCP_GROUPS=core,code,process,files,ports,state,runs,manage,inspect,volumes")
	h.start()
	c := openCampaign(t, h)
	idle := h.goroutines(t.Context())
	var dialects []dialect
	for _, path := range []string{"/mcp", "/mcp/daytona", "/mcp/orkestr", "/mcp/mcp-sandboxd"} {
		d := c.converse(t, path)
		t.Logf("%s has %d tools", path, len(d.tools))
		dialects = append(dialects, d)
	}
	if len(dialects[0].tools) < 40 {
		t.Fatalf("it lists %d tools", len(dialects[0].tools))
	}
	from := seed(t)
	requests := group{limit: 8}
	for n := range length(2000, 10_000) {
		if n%100 == 0 {
			c.renew(t.Context())
		}
		requests.do(func() error {
			m := &mutator{rand.New(rand.NewPCG(from, uint64(n))), nil, c.target()}
			d := dialects[0]
			if n%3 == 0 {
				d = pick(m, dialects)
			}
			asked := d.tools[n%len(d.tools)]
			head, body := m.message(d, asked, c.token)
			return c.send(t.Context(), fmt.Sprintf("message %d, %s", n, asked.Name), head, body)
		})
	}
	if err := requests.wait(); err != nil {
		t.Error(err)
	}
	for _, d := range dialects {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, h.url+d.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+c.token)
		r.Header.Set("Mcp-Session-Id", d.session)
		if resp, err := h.http.Do(r); err == nil { // one of the messages may have ended it
			_ = resp.Body.Close()
		}
	}
	c.over(t, idle)
}

// message is the head and the body of one: mostly a call of a tool, else what is no JSON-RPC, or not its turn.
func (m *mutator) message(d dialect, asked tool, token string) (head, body []byte) {
	arguments := m.value(asked.InputSchema, "", 0)
	if slices.Contains(unasked, asked.Name) {
		arguments = pick(m, []any{nil, "x", []any{1}, map[string]any{"": 1}, map[string]any{"name": nil}})
	}
	call := map[string]any{"jsonrpc": "2.0", "id": pick(m, []any{1, "a", 1 << 40, -5}), "method": "tools/call", "params": map[string]any{"name": asked.Name, "arguments": arguments}}
	switch m.IntN(20) {
	case 0:
		call["method"] = pick(m, append([]string{"tools/list", "resources/list", "resources/read", "prompts/get", "completion/complete", "logging/setLevel", "initialize", "ping", "tasks/get", "tasks/result",
			"tasks/cancel", "skills/list", "server/discover", "notifications/cancelled", "notifications/progress", "subscriptions/listen"}, hostile...))
		call["params"] = pick(m, []any{nil, []any{}, "x", map[string]any{"uri": m.text("")}, map[string]any{"cursor": m.text("")}, map[string]any{"taskId": m.text("")}, map[string]any{"level": m.text("")}, map[string]any{"requestId": m.number()}})
	case 1:
		delete(call, pick(m, []string{"jsonrpc", "id", "method", "params"}))
	case 2:
		call[pick(m, []string{"jsonrpc", "id", "method", "params"})] = m.value(nil, "", 0)
	case 3:
		call["params"] = map[string]any{"name": m.text(""), "arguments": arguments, "_meta": map[string]any{"progressToken": m.number(), m.text(""): nested(20)}}
	case 4:
		call["result"] = map[string]any{}
	}
	var v any = call
	if m.odds(4) {
		v = slices.Repeat([]any{call}, m.IntN(60))
	}
	body = m.encode(v)
	var b strings.Builder
	method := "POST"
	if m.odds(4) {
		method = pick(m, []string{"GET", "DELETE", "PUT", "OPTIONS"})
	}
	session, version := d.session, protocol
	if method == "DELETE" || m.odds(6) {
		session = pick(m, append([]string{"zzz"}, headerValues...))
	}
	if m.odds(6) {
		version = pick(m, append([]string{"2026-07-28", "2024-11-05", "1999-01-01"}, headerValues...))
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nMcp-Session-Id: %s\r\nMcp-Protocol-Version: %s\r\n", method, d.path, token, len(body), session, version)
	fmt.Fprintf(&b, "Content-Type: %s\r\nAccept: %s\r\n", m.mostly("application/json", headerValues), m.mostly("application/json, text/event-stream", headerValues))
	if m.odds(10) {
		fmt.Fprintf(&b, "%s: %s\r\n", pick(m, headers), pick(m, headerValues))
	}
	b.WriteString("Connection: close\r\n\r\n")
	return []byte(b.String()), body
}

// mostly is what is right, and now and then another.
func (m *mutator) mostly(right string, others []string) string {
	if m.odds(5) {
		return pick(m, others)
	}
	return right
}
