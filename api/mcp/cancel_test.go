// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/mcp"
	"sandpit.dev/api/service"
	"sandpit.dev/engine"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/process"
	"sandpit.dev/engine/skills"
	"sandpit.dev/internal/mcpbridge"
	"sandpit.dev/sandbox"
)

// again serves the house's engine by a second handler, with other options.
func (h *house) again(change func(*mcp.Options)) *house {
	h.t.Helper()
	o := mcp.Options{Services: service.Of(h.engine, h.inside, ports.New(h.engine), h.code, h.runs, deskOf(h.engine), skills.New(h.engine, skills.Options{})), Caller: guard.Caller, Version: "test"}
	change(&o)
	handler, err := mcp.New(o)
	if err != nil {
		h.t.Fatal(err)
	}
	g, err := guard.New(guard.Options{Tokens: callers})
	if err != nil {
		h.t.Fatal(err)
	}
	s := startServer(g.Wrap("mcp", handler))
	h.t.Cleanup(func() {
		handler.Close()
		s.Close()
	})
	other := *h
	other.handler, other.url = handler, s.URL
	return &other
}

// asked is a request with what every one has.
func (h *house) asked(ctx context.Context, method, url, token, body string, header map[string]string) *http.Request {
	h.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	return req
}

// hang sends a request whose answer nobody waits for; drop breaks its connection.
func (h *house) hang(token, body string, header map[string]string) (drop func()) {
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan struct{})
	req := h.asked(ctx, http.MethodPost, h.url, token, body, header)
	go func() {
		defer close(ended)
		if resp, err := h.http.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}()
	drop = func() { cancel(); <-ended }
	h.t.Cleanup(drop)
	return drop
}

// handshakeSession opens one, and gives the headers of what is said in it.
func (h *house) handshakeSession(version string) map[string]string {
	h.t.Helper()
	resp, body := h.post("t-alice", "", strings.Replace(initialize, handshake, version, 1), nil)
	id := resp.Header.Get("Mcp-Session-Id")
	if id == "" {
		h.t.Fatalf("initialize: %s, %s", resp.Status, body)
	}
	h.post("t-alice", id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	return map[string]string{"Mcp-Session-Id": id, "Mcp-Protocol-Version": version}
}

const (
	callMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`
	cancel7  = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
)

// longCall is a call with the id 7 that would take ten minutes.
func longCall(meta string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + meta + `"name":"run_command","arguments":{"command":"sleep 600","sandbox":"box"}}}`
}

var modernCall = map[string]string{"Mcp-Protocol-Version": stateless, "Mcp-Method": "tools/call", "Mcp-Name": "run_command"}

// stdio is a bridge that is fed lines; it gives what its end is told by.
func (h *house) stdio() (say func(string), kill func()) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = mcpbridge.Run(ctx, inR, outW, mcpbridge.Options{URL: h.url, Token: "t-alice", HTTP: h.http})
		_ = outW.Close()
	}()
	go func() { _, _ = io.Copy(io.Discard, outR) }()
	kill = func() {
		cancel()
		_ = inW.Close()
		<-ended
	}
	h.t.Cleanup(kill)
	return func(line string) {
		if _, err := io.WriteString(inW, line+"\n"); err != nil {
			h.t.Error(err)
		}
	}, kill
}

// TestCancelKillsTheCommandByEveryWay shows, through real connections of every
// transport and era, that the command of a call that is cancelled is gone, and that
// a process in the background is not.
func TestCancelKillsTheCommandByEveryWay(t *testing.T) {
	t.Parallel()
	house := open(t)
	h := house.again(func(o *mcp.Options) { o.ReturnGrace = 50 * time.Millisecond })
	ok(t, h.alice(), "create_sandbox", arguments{"name": "box"})
	alice := callers["t-alice"]
	background, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	running := func(t *testing.T) (ids []string) {
		page, err := h.engine.ListProcesses(t.Context(), alice, "box", process.Query{Running: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page.Items {
			if p.ID != background.ID {
				ids = append(ids, p.ID)
			}
		}
		return ids
	}

	for name, begin := range map[string]func(t *testing.T) (cancel func()){
		"StatelessHTTPByTheEndOfTheStream": func(*testing.T) func() {
			return h.hang("t-alice", longCall(callMeta), modernCall)
		},
		"HandshakeHTTPByNotification": func(t *testing.T) func() {
			in := h.handshakeSession(handshake)
			h.hang("t-alice", longCall(""), in)
			return func() { h.post("t-alice", in["Mcp-Session-Id"], cancel7, in) }
		},
		"HandshakeHTTPByTheEndOfTheConnection": func(*testing.T) func() {
			return h.hang("t-alice", longCall(""), h.handshakeSession(handshake))
		},
		"HandshakeHTTPOfOldByTheEndOfTheConnection": func(*testing.T) func() {
			return h.hang("t-alice", longCall(""), h.handshakeSession("2025-03-26"))
		},
		"HandshakeHTTPByTheEndOfTheSession": func(t *testing.T) func() {
			in := h.handshakeSession(handshake)
			h.hang("t-alice", longCall(""), in)
			return func() {
				resp, err := h.http.Do(h.asked(t.Context(), http.MethodDelete, h.url, "t-alice", "", in))
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
			}
		},
		"SSEByNotification": func(t *testing.T) func() {
			s := h.sse("t-alice")
			s.hello()
			s.say(longCall(""), http.StatusAccepted)
			return func() { s.say(cancel7, http.StatusAccepted) }
		},
		"SSEByTheEndOfTheStream": func(t *testing.T) func() {
			s := h.sse("t-alice")
			s.hello()
			s.say(longCall(""), http.StatusAccepted)
			return s.drop
		},
		"StdioStatelessByNotification": func(*testing.T) func() {
			say, _ := h.stdio()
			say(longCall(callMeta))
			return func() { say(cancel7) }
		},
		"StdioHandshakeByNotification": func(*testing.T) func() {
			say, _ := h.stdio()
			say(initialize)
			say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			say(longCall(""))
			return func() { say(cancel7) }
		},
		"StdioHandshakeByTheEndOfTheProgram": func(*testing.T) func() {
			say, kill := h.stdio()
			say(initialize)
			say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			say(longCall(""))
			return kill
		},
	} {
		t.Run(name, func(t *testing.T) {
			h.t = t
			defer func() { h.t = house.t }()
			cancel := begin(t)
			var ids []string
			for ids = running(t); len(ids) == 0; ids = running(t) {
				h.changed(t)
			}
			cancel()
			var rec sandbox.Process
			for {
				var err error
				if rec, err = h.engine.Process(t.Context(), alice, "box", ids[0]); err != nil {
					t.Fatal(err)
				}
				if rec.Result != nil {
					break
				}
				h.changed(t)
			}
			if rec.Result.Cause != sandbox.CauseKilled {
				t.Errorf("the command's cause: got %q, want killed", rec.Result.Cause)
			}
			if left := running(t); len(left) > 0 {
				t.Errorf("there run %v still", left)
			}
			if rec, err := h.engine.Process(t.Context(), alice, "box", background.ID); err != nil || rec.Result != nil {
				t.Errorf("the process in the background: %+v, %v; want that it runs", rec, err)
			}
		})
	}
}

// changed waits until the store has changed, or a little: a process begins and ends
// with an event each.
func (h *house) changed(t *testing.T) {
	select {
	case <-h.store.Changed():
	case <-time.After(20 * time.Millisecond):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// sseClient is a client of HTTP+SSE.
type sseClient struct {
	h        *house
	token    string
	endpoint string
	events   *bufio.Scanner
	resp     *http.Response
	drop     func()
}

func (h *house) sse(token string) *sseClient {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	req := h.asked(ctx, http.MethodGet, h.url+"/mcp", token, "", map[string]string{"Accept": "text/event-stream"})
	resp, err := h.http.Do(req)
	if err != nil {
		cancel()
		h.t.Fatal(err)
	}
	s := &sseClient{h: h, token: token, events: bufio.NewScanner(resp.Body), resp: resp}
	s.events.Buffer(nil, 1<<20)
	s.drop = func() { cancel(); _ = resp.Body.Close() }
	h.t.Cleanup(s.drop)
	if resp.StatusCode != http.StatusOK {
		h.t.Fatalf("GET: %s", resp.Status)
	}
	name, data := s.next()
	if name != "endpoint" {
		h.t.Fatalf("the first event is %q %q", name, data)
	}
	s.endpoint = data
	return s
}

// next returns the next event.
func (s *sseClient) next() (name, data string) {
	s.h.t.Helper()
	for s.events.Scan() {
		line := s.events.Text()
		switch {
		case line == "" && data != "":
			return name, data
		case strings.HasPrefix(line, "event: "):
			name = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			data = line[len("data: "):]
		}
	}
	s.h.t.Fatalf("the stream ended: %v", s.events.Err())
	return "", ""
}

func (s *sseClient) sayAs(token, body string) (*http.Response, string) {
	s.h.t.Helper()
	req := s.h.asked(s.h.t.Context(), http.MethodPost, s.h.url+s.endpoint, token, body, nil)
	req.Header.Del("Accept") // as its clients do
	resp, err := s.h.http.Do(req)
	if err != nil {
		s.h.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.h.t.Fatal(err)
	}
	return resp, string(text)
}

func (s *sseClient) say(body string, want int) {
	s.h.t.Helper()
	if resp, text := s.sayAs(s.token, body); resp.StatusCode != want {
		s.h.t.Errorf("POST %s: %s, %s; want %d", s.endpoint, resp.Status, text, want)
	}
}

// hello initializes the session.
func (s *sseClient) hello() {
	s.h.t.Helper()
	s.say(strings.Replace(initialize, handshake, "2024-11-05", 1), http.StatusAccepted)
	if _, data := s.next(); !strings.Contains(data, `"protocolVersion":"2024-11-05"`) {
		s.h.t.Fatalf("initialize: %s", data)
	}
	s.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, http.StatusAccepted)
}
