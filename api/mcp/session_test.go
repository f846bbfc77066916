// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/sandbox"
)

func toolCall(name string) *sdk.CallToolParams {
	return &sdk.CallToolParams{Name: name, Arguments: arguments{}}
}

// post sends one message as any HTTP client might.
func (h *house) post(token, session, body string, header map[string]string) (*http.Response, string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.url, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := h.http.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp, string(data)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// A method that does not exist is answered as a call, with its id, in both eras.
func TestAMethodThatDoesNotExist(t *testing.T) {
	t.Parallel()
	h := open(t)
	resp, _ := h.post("t-alice", "", initialize, nil)
	session := resp.Header.Get("Mcp-Session-Id")
	h.post("t-alice", session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	ask := func(session, id string, header map[string]string) (status int, answer struct {
		ID    json.RawMessage
		Error struct {
			Code    int
			Message string
		}
	}) {
		t.Helper()
		resp, body := h.post("t-alice", session, `{"jsonrpc":"2.0","id":`+id+`,"method":"no/such","params":{`+callMeta+`"x":1}}`, header)
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatalf("%s %q: %v", resp.Status, body, err)
		}
		return resp.StatusCode, answer
	}
	for _, id := range []string{`7`, `"seven"`} {
		if status, got := ask(session, id, nil); status != 200 || string(got.ID) != id || got.Error.Code != -32601 || !strings.Contains(got.Error.Message, `"no/such"`) {
			t.Errorf("in a session, %s: %d %+v", id, status, got)
		}
		modern := map[string]string{"Mcp-Protocol-Version": stateless, "Mcp-Method": "no/such"}
		if status, got := ask("", id, modern); status != 404 || string(got.ID) != id || got.Error.Code != -32601 {
			t.Errorf("without one, %s: %d %+v", id, status, got)
		}
	}
	// What is no call has no answer of its own.
	if resp, body := h.post("t-alice", session, `{"jsonrpc":"2.0","id":1,"method":"no/such","params":{"x":"`+strings.Repeat("x", 32<<10)+`"}}`, nil); resp.StatusCode != 400 || !strings.Contains(body, "-32600") {
		t.Errorf("one that is too long to be kept: %s %.200s", resp.Status, body)
	}
	if resp, body := h.post("t-alice", session, `{"jsonrpc":"2.0","method":"no/such"}`, nil); resp.StatusCode != 400 && resp.StatusCode != 202 {
		t.Errorf("a notification: %s %.200s", resp.Status, body)
	}
}

func TestSession(t *testing.T) {
	t.Parallel()
	h := open(t)
	resp, body := h.post("t-alice", "", initialize, nil)
	id := resp.Header.Get("Mcp-Session-Id")
	if resp.StatusCode != http.StatusOK || id == "" || !strings.Contains(body, `"protocolVersion":"2025-11-25"`) {
		t.Fatalf("initialize: %s, %s", resp.Status, body)
	}
	if got := resp.Header.Get("X-Accel-Buffering"); got != "no" {
		t.Errorf("X-Accel-Buffering: got %q, want no", got)
	}
	h.post("t-alice", id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	const ask = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`

	t.Run("ServesItsToken", func(t *testing.T) {
		resp, body := h.post("t-alice", id, ask, nil)
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, "run_command") {
			t.Errorf("%s, %s", resp.Status, body)
		}
	})

	t.Run("RefusesEveryOtherToken", func(t *testing.T) {
		for _, token := range []string{"t-bob", "t-reader", "t-stranger"} {
			resp, body := h.post(token, id, ask, nil)
			if resp.StatusCode != http.StatusForbidden || !strings.Contains(body, "another token") || strings.Contains(body, "run_command") {
				t.Errorf("%s: %s, %s", token, resp.Status, body)
			}
			if !json.Valid([]byte(body)) {
				t.Errorf("%s: the refusal is not JSON: %s", token, body)
			}
		}
	})

	t.Run("OfNobodyIsNotFound", func(t *testing.T) {
		if resp, body := h.post("t-alice", "made-up", ask, nil); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s, %s", resp.Status, body)
		}
	})

	t.Run("EndsByDelete", func(t *testing.T) {
		resp, _ := h.post("t-alice", "", initialize, nil)
		other := resp.Header.Get("Mcp-Session-Id")
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, h.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer t-alice")
		req.Header.Set("Mcp-Session-Id", other)
		del, err := h.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		del.Body.Close()
		if resp, body := h.post("t-alice", other, ask, nil); resp.StatusCode != http.StatusNotFound {
			t.Errorf("after the delete: %s, %s", resp.Status, body)
		}
	})

	t.Run("WithoutATokenIsRefused", func(t *testing.T) {
		resp, body := h.post("", id, ask, nil)
		if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") == "" || !json.Valid([]byte(body)) {
			t.Errorf("%s, %s", resp.Status, body)
		}
	})
}

func TestEras(t *testing.T) {
	t.Parallel()
	h := open(t)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"}}`
	modern := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}

	t.Run("AStatelessRequestNeedsNoSession", func(t *testing.T) {
		resp, body := h.post("t-alice", "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta+`}}`, modern)
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, "run_command") || resp.Header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s, %s", resp.Status, body)
		}
	})

	t.Run("TheMessageDecidesWhereTheHeaderIsMissing", func(t *testing.T) {
		resp, body := h.post("t-alice", "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta+`}}`, nil)
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "header is required") {
			t.Errorf("%s, %s; want the refusal of the new era", resp.Status, body)
		}
	})

	t.Run("BothAreNegotiated", func(t *testing.T) {
		for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", handshake, stateless} {
			s := h.session("t-alice", version, nil)
			if got := s.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("asked for %s, got %s", version, got)
			}
			ok(t, s, "list_sandboxes", nil)
		}
	})

	t.Run("BrokenMessagesAreRefused", func(t *testing.T) {
		for _, body := range []string{"", "{", "null", "[]", `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, strings.Repeat("[", 100_000)} {
			resp, got := h.post("t-alice", "", body, nil)
			if resp.StatusCode < 400 && !strings.Contains(got, `"error"`) {
				t.Errorf("%.20q: %s, %s", body, resp.Status, got)
			}
		}
	})

	t.Run("AHugeMessageIsRefused", func(t *testing.T) {
		body := append(bytes.Repeat([]byte(" "), 17<<20), []byte(initialize)...)
		resp, got := h.post("t-alice", "", string(body), nil)
		if resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(got, "16777216") {
			t.Errorf("%s, %s", resp.Status, got)
		}
	})
}

// TestEndOfSession shows what becomes of calls in progress.
func TestEndOfSession(t *testing.T) {
	t.Parallel()
	// begin starts a command that would run for long, and returns when it runs.
	begin := func(t *testing.T, h *house) (s *sdk.ClientSession, ended chan string) {
		begun := make(chan struct{}, 1)
		s = h.session("t-alice", handshake, &sdk.ClientOptions{
			ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) {
				select {
				case begun <- struct{}{}:
				default:
				}
			},
		})
		ok(t, s, "create_sandbox", arguments{"name": "box"})
		p := &sdk.CallToolParams{Name: "run_command", Arguments: arguments{"command": "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo end > mark", "sandbox": "box"}}
		p.SetProgressToken(1)
		ended = make(chan string, 1)
		go func() {
			res, err := s.CallTool(t.Context(), p)
			if err != nil {
				ended <- err.Error()
				return
			}
			ended <- text(t, res)
		}()
		<-begun
		return s, ended
	}

	t.Run("ByTheClientKillsTheCommand", func(t *testing.T) {
		h := open(t)
		s, ended := begin(t, h)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, h.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer t-alice")
		req.Header.Set("Mcp-Session-Id", s.ID())
		resp, err := h.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		<-ended
		if ev := h.commandDone("box"); ev.Cause != sandbox.CauseKilled {
			t.Errorf("the command's cause: got %q, want killed", ev.Cause)
		}
	})

	t.Run("ByTheServersEndLeavesTheCommandRunning", func(t *testing.T) {
		h := open(t)
		_, ended := begin(t, h)
		h.handler.Close()
		wantParts(t, <-ended, "error (unavailable): the server is stopping; the command goes on")
		if _, _, err := h.inside.WriteFile(t.Context(), callers["t-alice"], "box", "go", strings.NewReader(""), sandbox.WriteFileOptions{}); err != nil {
			t.Fatal(err)
		}
		if ev := h.commandDone("box"); ev.Cause != sandbox.CauseNone || ev.ExitCode != 0 {
			t.Errorf("the command: exit %d, cause %q; want that it ended by itself", ev.ExitCode, ev.Cause)
		}
	})
}
