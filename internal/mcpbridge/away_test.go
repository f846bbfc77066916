// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/internal/mcpbridge"
)

// vacant returns an address that does not answer until the test listens there.
func vacant(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// tries counts how often a bridge looks where its server is, which it does when the server did
// not answer and it is to try again.
type tries struct {
	n    atomic.Int64
	each chan struct{}
}

func (c *tries) find(address string) func() (string, string, bool) {
	return func() (string, string, bool) {
		c.n.Add(1)
		select {
		case c.each <- struct{}{}:
		default:
		}
		return "http://" + address, "secret", true
	}
}

func TestAServerThatIsAway(t *testing.T) {
	t.Run("IsWaitedForWhenItComesLate", func(t *testing.T) {
		address, c := vacant(t), &tries{each: make(chan struct{}, 1)}
		s := bridge(t, mcpbridge.Options{URL: "http://" + address, Find: c.find(address), Patience: waitBound})
		s.send(`{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`, handshake)
		for range 3 {
			await(t, c.each, "another try")
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		newServer(t, l, false)
		if got := s.next(); got.ID != "open" || got.Error != nil {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("IsNamedWithTheCauseAndTheNextStep", func(t *testing.T) {
		address := vacant(t)
		s := bridge(t, mcpbridge.Options{URL: "http://" + address, Patience: 100 * time.Millisecond, Remedy: "look whether it runs"})
		s.callTool(1, "echo", "x")
		got := s.next()
		if got.ID != 1.0 || got.Error == nil {
			t.Fatalf("got %+v, want an error", got)
		}
		for _, want := range []string{"http://" + address, "connection refused", "look whether it runs"} {
			if !strings.Contains(got.Error.Message, want) {
				t.Errorf("it says %q, want %q in it", got.Error.Message, want)
			}
		}
		if strings.Contains(got.Error.Message, "Post ") {
			t.Errorf("it says %q, and how it was asked means nothing to anybody", got.Error.Message)
		}
	})

	t.Run("IsNotWaitedForAgainForANotification", func(t *testing.T) {
		address, c := vacant(t), &tries{}
		s := bridge(t, mcpbridge.Options{URL: "http://" + address, Find: c.find(address), Patience: 300 * time.Millisecond})
		s.callTool(1, "echo", "x")
		if got := s.next(); got.ID != 1.0 || got.Error == nil {
			t.Fatalf("got %+v, want an error", got)
		}
		before := c.n.Load()
		if before == 0 {
			t.Error("the call was tried once, want again and again")
		}
		s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		s.send(`no message`) // it is answered when the notification is done with
		if got := s.next(); got.Error == nil {
			t.Fatalf("got %+v, want an error", got)
		}
		if n := c.n.Load() - before; n != 0 {
			t.Errorf("the notification was tried %d times more, and others wait behind it", n)
		}
		// A call is waited for again.
		s.callTool(2, "echo", "x")
		if got := s.next(); got.ID != 2.0 || got.Error == nil {
			t.Fatalf("got %+v, want an error", got)
		}
		if c.n.Load() == before {
			t.Error("the next call was tried once, want again and again")
		}
	})

	t.Run("IsNotWaitedForWhereAnotherAnswers", func(t *testing.T) {
		for name, start := range map[string]func(*httptest.Server){
			"failed to verify certificate":  (*httptest.Server).StartTLS,
			"HTTP response to HTTPS client": (*httptest.Server).Start,
		} {
			srv := httptest.NewUnstartedServer(http.NotFoundHandler())
			srv.Config.ErrorLog = log.New(io.Discard, "", 0) // it notes the handshake that failed
			start(srv)
			defer srv.Close()
			_, address, _ := strings.Cut(srv.URL, "//")
			s := bridge(t, mcpbridge.Options{URL: "https://" + address, Patience: time.Hour})
			s.callTool(1, "echo", "x")
			if got := s.next(); got.Error == nil || !strings.Contains(got.Error.Message, name) {
				t.Errorf("got %+v, want %q", got, name)
			}
		}
	})

	t.Run("ButAnswersThatItStartsIsGivenLonger", func(t *testing.T) {
		var asked atomic.Int64
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) < 4 {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprint(w, `{"detail":"the server is starting"}`)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		}))
		defer srv.Close()
		s := bridge(t, mcpbridge.Options{URL: srv.URL, Patience: time.Nanosecond, StartPatience: waitBound})
		s.callTool(1, "echo", "x")
		if got := s.next(); got.ID != 1.0 || got.Error != nil {
			t.Errorf("got %+v", got)
		}
		asked.Store(-1 << 40)
		s = bridge(t, mcpbridge.Options{URL: srv.URL, Patience: time.Hour, StartPatience: time.Nanosecond})
		s.callTool(1, "echo", "x")
		if got := s.next(); got.Error == nil || !strings.Contains(got.Error.Message, "the server is starting") {
			t.Errorf("got %+v, want what the server says", got)
		}
	})

	t.Run("MayAnswerACallWhileItSaysThatItIsNotReady", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"not now"}}`)
		}))
		defer srv.Close()
		s := bridge(t, mcpbridge.Options{URL: srv.URL, StartPatience: time.Nanosecond})
		s.callTool(1, "echo", "x")
		if got := s.next(); got.ID != 1.0 || got.Error == nil || got.Error.Message != "not now" {
			t.Errorf("got %+v, want the server's own answer", got)
		}
		if err := s.end(); err != nil {
			t.Error("Run:", err)
		}
	})
}
