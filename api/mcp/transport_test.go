// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

var removeGo = engine.ExecRequest{Argv: []string{"rm", "-f", "go"}}

// TestMethods holds what the address answers to which method.
func TestMethods(t *testing.T) {
	t.Parallel()
	h := open(t)
	modern := map[string]string{"Mcp-Protocol-Version": stateless}
	for _, c := range []struct {
		name, method string
		header       map[string]string
		status       int
		allow, part  string
	}{
		{"PutIsNone", "PUT", nil, 405, "GET, POST, DELETE", "no such request"},
		{"AStreamOfItsOwnIsNotModern", "GET", modern, 405, "POST", "no such request"},
		{"NorIsASession", "DELETE", modern, 405, "POST", "no such request"},
		{"ABrowserIsToldWhatThisIs", "GET", map[string]string{"Accept": "text/html"}, 406, "", "address of an MCP server"},
		{"AnUnknownSessionIsNotFound", "GET", map[string]string{"Mcp-Session-Id": "x"}, 404, "", "session not found"},
		{"NorCanItBeEnded", "DELETE", map[string]string{"Mcp-Session-Id": "x"}, 404, "", "session not found"},
		{"AnEndNeedsASession", "DELETE", nil, 400, "", "Mcp-Session-Id"},
		{"AnotherHostIsRefused", "POST", map[string]string{"Host": "evil.example"}, 403, "", "evil.example"},
		{"AnotherOriginIsRefused", "POST", map[string]string{"Origin": "https://evil.example"}, 403, "", "evil.example"},
		{"AnotherOriginOpensNoStream", "GET", map[string]string{"Origin": "https://evil.example"}, 403, "", "evil.example"},
		{"AWrongTokenIsTold", "POST", map[string]string{"Authorization": "Bearer wrong"}, 401, "", "token"},
		{"NoTokenIsToldWhatToSend", "GET", map[string]string{"Authorization": ""}, 401, "", "Authorization: Bearer TOKEN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := h.asked(t.Context(), c.method, h.url, "t-alice", "", c.header)
			if host := c.header["Host"]; host != "" {
				req.Host = host
			}
			if req.Header.Get("Authorization") == "" {
				req.Header.Del("Authorization")
			}
			resp, err := h.http.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != c.status || resp.Header.Get("Allow") != c.allow || !strings.Contains(string(body), c.part) {
				t.Errorf("got %s, Allow %q, %s; want %d, %q, …%s…", resp.Status, resp.Header.Get("Allow"), body, c.status, c.allow, c.part)
			}
			if resp.StatusCode != http.StatusNotFound && !json.Valid(body) {
				t.Errorf("the refusal is not JSON: %s", body)
			}
			if (resp.StatusCode == http.StatusUnauthorized) != (resp.Header.Get("WWW-Authenticate") != "") {
				t.Errorf("WWW-Authenticate: %q with %s", resp.Header.Get("WWW-Authenticate"), resp.Status)
			}
		})
	}
}

// TestNames holds the check of the headers that name what a stateless request is about.
func TestNames(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, c := range []struct{ name, method, params, header, part string }{
		{"AToolByAnotherName", "tools/call", `"name":"list_sandboxes"`, "read_file", "does not match"},
		{"AToolInBase64", "tools/call", `"name":"list_sandboxes"`, "=?base64?bGlzdF9zYW5kYm94ZXM=?=", "sandboxes"},
		{"BrokenBase64", "tools/call", `"name":"list_sandboxes"`, "=?base64?!?=", "base64"},
		{"ATaskWithoutAName", "tasks/get", `"taskId":"t1"`, "", "missing required Mcp-Name"},
		{"ATaskByAnotherName", "tasks/update", `"taskId":"t1","inputResponses":{}`, "t2", "does not match"},
		{"ACancelByAnotherName", "tasks/cancel", `"taskId":"t1"`, "t2", "does not match"},
		{"AnotherMethod", "tasks/get", `"taskId":"t1"`, "t1 ", "-32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := map[string]string{"Mcp-Protocol-Version": stateless, "Mcp-Method": c.method}
			if c.header != "" {
				header["Mcp-Name"] = c.header
			}
			resp, body := h.post("t-alice", "", `{"jsonrpc":"2.0","id":5,"method":"`+c.method+`","params":{`+callMeta+c.params+`}}`, header)
			if !strings.Contains(body, c.part) || !strings.Contains(body, `"id":5`) && c.name != "BrokenBase64" {
				t.Errorf("%s, %s; want …%s…", resp.Status, body, c.part)
			}
			if strings.Contains(c.part, "match") && (resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "-32020")) {
				t.Errorf("%s, %s; want 400 and -32020", resp.Status, body)
			}
		})
	}
}

// slowHello is a server that takes its time to open a session.
func slowHello(s *sdk.Server) {
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if method == "initialize" {
				time.Sleep(50 * time.Millisecond)
			}
			return next(ctx, method, req)
		}
	})
}

// TestKeepAlive shows that no stream stands still for long.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	h := open(t).again(func(o *mcp.Options) { o.KeepAlive = 10 * time.Millisecond; o.Extend.Server = slowHello })
	ok(t, h.alice(), "create_sandbox", arguments{"name": "box"})
	h.handshakeSession("2025-03-26") // its id is not lost, though its answer is the first event
	const alive = ": keep-alive"
	call := strings.Replace(longCall(callMeta), "sleep 600", "while [ ! -e go ]; do sleep 0.01; done", 1)
	letGo := func(t *testing.T) {
		if _, _, err := h.inside.WriteFile(t.Context(), callers["t-alice"], "box", "go", strings.NewReader(""), sandbox.WriteFileOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, req := range map[string]func() *http.Request{
		"OfACall": func() *http.Request { return h.asked(t.Context(), "POST", h.url, "t-alice", call, modernCall) },
		"OfACallInASession": func() *http.Request {
			return h.asked(t.Context(), "POST", h.url, "t-alice", strings.Replace(call, callMeta, "", 1), h.handshakeSession(handshake))
		},
		"OfASession": func() *http.Request {
			return h.asked(t.Context(), "GET", h.url, "t-alice", "", h.handshakeSession(handshake))
		},
		"OfSSE": func() *http.Request { return h.asked(t.Context(), "GET", h.url, "t-alice", "", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			r := req()
			resp, err := h.http.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.Header.Get("X-Accel-Buffering") != "no" || resp.Header.Get("Content-Type") != "text/event-stream" {
				t.Errorf("the headers are %v", resp.Header)
			}
			lines := bufio.NewScanner(resp.Body)
			seen := 0
			for seen < 3 && lines.Scan() {
				if lines.Text() == alive {
					seen++
				}
			}
			if seen < 3 {
				t.Fatalf("the stream ended after %d signs of life: %v", seen, lines.Err())
			}
			if r.Method == http.MethodGet {
				return
			}
			letGo(t)
			answered := false
			for lines.Scan() {
				answered = answered || strings.HasPrefix(lines.Text(), "data: ") && strings.Contains(lines.Text(), "exit 0")
			}
			if !answered {
				t.Error("the answer did not come")
			}
			if _, err := h.engine.Exec(t.Context(), callers["t-alice"], "box", removeGo, nil); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestSessionsAreBounded shows that a token that opens sessions and forgets them
// loses the oldest, and nobody else does.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	h := open(t)
	const most = 256
	ask := func(token string, in map[string]string) int {
		resp, _ := h.post(token, in["Mcp-Session-Id"], `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, in)
		return resp.StatusCode
	}
	open := func(token string) map[string]string {
		resp, _ := h.post(token, "", initialize, nil)
		return map[string]string{"Mcp-Session-Id": resp.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": handshake}
	}
	bobs := open("t-bob")
	used, forgotten := open("t-alice"), open("t-alice")
	for range most {
		if got := ask("t-alice", used); got != http.StatusOK {
			t.Fatalf("the session that is used: %d", got)
		}
		open("t-alice")
	}
	if got := ask("t-alice", used); got != http.StatusOK {
		t.Errorf("the session that is used: %d", got)
	}
	if got := ask("t-alice", forgotten); got != http.StatusNotFound {
		t.Errorf("the session that was forgotten: %d, want 404", got)
	}
	if got := ask("t-bob", bobs); got != http.StatusOK {
		t.Errorf("another token's session: %d", got)
	}
}

// TestAStreamThatBrokeGoesOn shows that a client gets the answer whose connection it
// lost, and that nobody else does.
func TestAStreamThatBrokeGoesOn(t *testing.T) {
	t.Parallel()
	h := open(t)
	ok(t, h.alice(), "create_sandbox", arguments{"name": "box"})
	in := h.handshakeSession(handshake)
	call := strings.Replace(longCall(""), "sleep 600", "while [ ! -e go ]; do sleep 0.01; done; echo done", 1)
	resp, err := h.http.Do(h.asked(t.Context(), "POST", h.url, "t-alice", call, in))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(resp.Body)
	id := ""
	for id == "" && lines.Scan() {
		id, _ = strings.CutPrefix(lines.Text(), "id: ")
		if !strings.HasPrefix(lines.Text(), "id: ") {
			id = ""
		}
	}
	if id == "" {
		t.Fatal("the stream has no id to come back with")
	}
	_ = resp.Body.Close() // the connection breaks
	again := map[string]string{"Last-Event-Id": id}
	for k, v := range in {
		again[k] = v
	}
	if resp, err = h.http.Do(h.asked(t.Context(), "GET", h.url, "t-bob", "", again)); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("another token: %s", resp.Status)
	}
	for { // until the server has heard that the connection broke
		if resp, err = h.http.Do(h.asked(t.Context(), "GET", h.url, "t-alice", "", again)); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusConflict {
			break
		}
		_ = resp.Body.Close()
		h.changed(t)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("coming back: %s", resp.Status)
	}
	if _, _, err := h.inside.WriteFile(t.Context(), callers["t-alice"], "box", "go", strings.NewReader(""), sandbox.WriteFileOptions{}); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(all); !strings.Contains(got, `"id":7`) || !strings.Contains(got, "exit 0") || strings.Count(got, "data: ") != 1 {
		t.Errorf("got %s", got)
	}
	// And once more, since it was lost on the way.
	if resp, err = h.http.Do(h.asked(t.Context(), "GET", h.url, "t-alice", "", again)); err != nil {
		t.Fatal(err)
	}
	twice, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	plain := func(b []byte) string { return strings.ReplaceAll(string(b), ": keep-alive\n\n", "") }
	if err != nil || plain(twice) != plain(all) {
		t.Errorf("the second time: %v, %s; want %s", err, twice, all)
	}
	for _, bad := range []string{"made_1", "x", "_", fmt.Sprint(id, "_1"), strings.Split(id, "_")[0] + "_-1"} {
		again["Last-Event-Id"] = bad
		if resp, err = h.http.Do(h.asked(t.Context(), "GET", h.url, "t-alice", "", again)); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("Last-Event-ID %q: %s, want 400", bad, resp.Status)
		}
	}
}
