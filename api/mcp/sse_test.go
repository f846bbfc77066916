// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp"
)

// TestSSE is the transport of the protocol's first version.
func TestSSE(t *testing.T) {
	t.Parallel()
	h := open(t)
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`

	t.Run("ServesAClientOfIt", func(t *testing.T) {
		c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		s, err := c.Connect(t.Context(), &sdk.SSEClientTransport{
			Endpoint: h.url, HTTPClient: &http.Client{Transport: bearer{"t-alice", h.http.Transport}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got := s.InitializeResult().ProtocolVersion; got != handshake {
			t.Errorf("speaks %s, want %s: the stateless era has no such transport", got, handshake)
		}
		wantParts(t, ok(t, s, "run_command", arguments{"command": "echo $((6*7))"}), "exit 0", "\n42")
	})

	t.Run("NamesAnAddressBelowItsOwnPath", func(t *testing.T) {
		s := h.sse("t-alice")
		if !strings.HasPrefix(s.endpoint, "/mcp?sessionId=") || len(s.endpoint) < len("/mcp?sessionId=")+32 {
			t.Errorf("the endpoint is %q", s.endpoint)
		}
		for name, want := range map[string]string{"X-Accel-Buffering": "no", "Content-Type": "text/event-stream"} {
			if got := s.resp.Header.Get(name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	})

	t.Run("RefusesEveryOtherToken", func(t *testing.T) {
		s := h.sse("t-alice")
		s.hello()
		for _, token := range []string{"t-bob", "t-reader", "t-stranger"} {
			resp, body := s.sayAs(token, list)
			if resp.StatusCode != http.StatusForbidden || !strings.Contains(body, "another token") {
				t.Errorf("%s: %s, %s", token, resp.Status, body)
			}
		}
		if resp, _ := s.sayAs("nobody", list); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("a wrong token: %s", resp.Status)
		}
		s.say(list, http.StatusAccepted)
		if _, data := s.next(); !strings.Contains(data, `"id":2`) || !strings.Contains(data, "run_command") {
			t.Errorf("the session's own answer: %s", data)
		}
	})

	t.Run("ShowsAReaderOnlyWhatItMayUse", func(t *testing.T) {
		s := h.sse("t-reader")
		s.hello()
		s.say(list, http.StatusAccepted)
		if _, data := s.next(); strings.Contains(data, `"run_command"`) || !strings.Contains(data, "list_sandboxes") {
			t.Errorf("got %s", data)
		}
	})

	t.Run("RefusesWhatIsNoMessage", func(t *testing.T) {
		s := h.sse("t-alice")
		for body, want := range map[string]int{
			"": 400, "{": 400, "[]": 400, "null": 400, `{"jsonrpc":"2.0"}`: 400, strings.Repeat("[", 100_000): 400,
			strings.Repeat(" ", 17<<20): 413,
		} {
			s.say(body, want)
		}
		s.hello() // it is none the worse
	})

	t.Run("EndsWithItsStream", func(t *testing.T) {
		s := h.sse("t-alice")
		s.hello()
		s.drop()
		for {
			resp, _ := s.sayAs("t-alice", list)
			if resp.StatusCode == http.StatusNotFound {
				break
			}
			if resp.StatusCode != http.StatusAccepted {
				t.Fatalf("got %s", resp.Status)
			}
			h.changed(t) // the server has not heard of it yet
		}
		s.endpoint = "/mcp?sessionId=madeup"
		s.say(list, http.StatusNotFound)
	})

	t.Run("EndsWithTheServer", func(t *testing.T) {
		other := h.again(func(*mcp.Options) {})
		s := other.sse("t-alice")
		s.hello()
		other.handler.Close()
		for s.events.Scan() { // it ends, and does not hang
			continue
		}
	})
}
