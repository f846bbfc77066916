// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/internal/mcpbridge"
)

func TestBadInput(t *testing.T) {
	srv := newServer(t, nil, false)
	s := bridge(t, mcpbridge.Options{URL: srv.URL, MaxMessage: 2000})
	s.open()

	type refusal struct {
		ID   any
		Code int
	}
	for _, c := range []struct {
		line string
		want refusal
	}{
		{"garbage", refusal{nil, -32700}},
		{`{"jsonrpc":"2.0","id":`, refusal{nil, -32700}},
		{"\xff\xfe\x00", refusal{nil, -32700}},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, refusal{nil, -32600}},
		{`{}`, refusal{nil, -32600}},
		{`"text"`, refusal{nil, -32700}},
		{`{"x":"` + strings.Repeat("x", 300_000) + `"}`, refusal{nil, -32700}},
	} {
		s.send("%s", c.line)
		got := s.next()
		if got.Error == nil {
			t.Errorf("%.30q: got %+v, want an error", c.line, got)
			continue
		}
		if diff := cmp.Diff(c.want, refusal{got.ID, got.Error.Code}); diff != "" {
			t.Errorf("%.30q (-want +got):\n%s", c.line, diff)
		}
	}
	s.send("\n  \r\n") // empty lines are nothing
	s.send(`{"jsonrpc":"2.0","id":7,"method":"ping","params":7}`)
	if got := s.next(); got.ID != 7.0 {
		t.Errorf("odd parameters: got %+v, want the server's answer", got)
	}
	s.callTool(8, "echo", "still here")
	if got := s.next(); got.text() != "still here" {
		t.Errorf("after all that: got %+v", got)
	}

	t.Run("AnIdInUse", func(t *testing.T) {
		s.callTool(9, "wait", "x")
		await(t, srv.begun, "the call")
		s.callTool(9, "echo", "x")
		if got := s.next(); got.ID != 9.0 || got.Error == nil {
			t.Errorf("got %+v, want an error", got)
		}
		srv.letGo()
		s.next()
	})

	t.Run("AWrongToken", func(t *testing.T) {
		s := bridge(t, mcpbridge.Options{URL: srv.URL, Token: "wrong"})
		s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		got := s.next()
		if got.Error == nil || !strings.Contains(got.Error.Message, "401") || !strings.Contains(got.Error.Message, "who are you") || strings.Contains(got.Error.Message, "wrong") {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("AnAddressThatIsNone", func(t *testing.T) {
		if err := mcpbridge.Run(t.Context(), strings.NewReader(""), io.Discard, mcpbridge.Options{URL: "localhost:1"}); err == nil {
			t.Error("it was taken")
		}
	})
}

// TestHostileServer shows that nothing but messages reaches stdout, whatever the
// server answers.
func TestHostileServer(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"Html": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>log in</html>")
		},
		"JSONThatIsNone": func(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/json"); fmt.Fprint(w, "{") },
		"EventsOfGarbage": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: x\n\n: c\n\ndata:\n\n")
		},
		"AnotherCallsReply": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":99,"result":{}}`)
		},
		"EndlessEvent": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 100 {
				fmt.Fprintf(w, "data: %s\n", strings.Repeat("x", 1000))
			}
		},
		"EndlessBody": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, strings.Repeat(" ", 100_000))
		},
		"Accepted": func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) },
		"Teapot":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusTeapot) },
	} {
		t.Run(name, func(t *testing.T) {
			var once sync.Once
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { once.Do(func() {}); answer(w) }))
			defer srv.Close()
			s := bridge(t, mcpbridge.Options{URL: srv.URL, MaxMessage: 10_000, Patience: time.Millisecond})
			s.callTool(1, "echo", "x")
			for {
				got := s.next()
				if got.ID == 99.0 {
					continue // passed on: it is a message
				}
				if got.ID != 1.0 || got.Error == nil {
					t.Errorf("got %+v, want an error for the call", got)
				}
				break
			}
			if err := s.end(); err != nil {
				t.Error("Run:", err)
			}
		})
	}
}
