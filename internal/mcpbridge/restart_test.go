// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandpit.dev/internal/mcpbridge"
)

func TestCancel(t *testing.T) {
	t.Run("OfTheOldEraIsAMessage", func(t *testing.T) {
		srv := newServer(t, nil, false)
		s := bridge(t, mcpbridge.Options{URL: srv.URL})
		s.open()
		s.callTool(1, "wait", "x")
		await(t, srv.begun, "the call")
		s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		await(t, srv.ended, "the end of the call")
	})

	t.Run("MayFollowTheCallAtOnce", func(t *testing.T) {
		srv := newServer(t, nil, false)
		s := bridge(t, mcpbridge.Options{URL: srv.URL})
		s.open()
		go func() { _, _ = io.Copy(io.Discard, s.raw) }() // answers to cancelled calls may come
		for i := range 20 {
			s.callTool(i, "wait", "x")
			s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i)
		}
		// Those that began have ended when the bridge has; else it would wait.
		s.in.Close()
		if err := await(t, s.ended, "the end of Run"); err != nil {
			t.Error("Run:", err)
		}
		if len(srv.begun) != len(srv.ended) {
			t.Errorf("%d calls began and %d ended", len(srv.begun), len(srv.ended))
		}
	})

	t.Run("OfTheNewEraEndsTheRequest", func(t *testing.T) {
		srv := newServer(t, nil, true)
		s := bridge(t, mcpbridge.Options{URL: srv.URL})
		s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{"name":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
		await(t, srv.begun, "the call")
		s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		await(t, srv.ended, "the end of the call")
		if err := s.end(); err != nil {
			t.Error("Run:", err)
		}
	})
}

// TestLeftCalls ends the bridge while the server works at a call, and while a notification before
// the end keeps it from seeing the end at once. However the two race, the server learns that the
// call has no client any more.
func TestLeftCalls(t *testing.T) {
	for range 20 {
		reached, cancelled := make(chan string, 2), make(chan string, 2)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var m struct {
				Method string
				Params struct{ RequestID json.RawMessage }
			}
			_ = json.NewDecoder(r.Body).Decode(&m)
			switch m.Method {
			case "initialize":
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Mcp-Session-Id", "s")
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`)
			case "tools/call", "notifications/slow":
				reached <- m.Method
				<-r.Context().Done()
			case "notifications/cancelled":
				cancelled <- string(m.Params.RequestID)
				w.WriteHeader(http.StatusAccepted)
			}
		}))
		ctx, cancel := context.WithCancel(t.Context())
		inR, inW := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- mcpbridge.Run(ctx, inR, io.Discard, mcpbridge.Options{URL: srv.URL}) }()
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`,
			`{"jsonrpc":"2.0","method":"notifications/slow"}`,
		} {
			fmt.Fprintln(inW, line)
		}
		await(t, reached, "the call or the notification")
		await(t, reached, "the other")
		cancel()
		if err := await(t, ended, "the end of Run"); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: got %v, want %v", err, context.Canceled)
		}
		inW.Close()
		srv.Close()
		if len(cancelled) != 1 || <-cancelled != "1" {
			t.Fatal("the server was not told that the call was given up")
		}
	}
}

func TestRestart(t *testing.T) {
	// again starts another server where the first one was.
	again := func(t *testing.T, srv *server) *server {
		addr := srv.Listener.Addr().String()
		srv.stop()
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		return newServer(t, l, false)
	}

	t.Run("BetweenCallsIsNotSeen", func(t *testing.T) {
		srv := newServer(t, nil, false)
		s := bridge(t, mcpbridge.Options{URL: srv.URL})
		s.open()
		s.callTool(1, "echo", "before")
		if got := s.next(); got.text() != "before" {
			t.Fatalf("got %+v", got)
		}
		srv = again(t, srv)
		for i := range 20 { // all find the session gone, and share a new one
			s.callTool(i, "echo", "after")
		}
		for range 20 {
			if got := s.next(); got.text() != "after" {
				t.Errorf("got %q, %+v", got.text(), got)
			}
		}
		n := 0
		for range srv.mcp.Sessions() {
			n++
		}
		if n != 1 {
			t.Errorf("the new server has %d sessions, want 1", n)
		}
	})

	t.Run("IsWaitedForWhileTheServerIsDown", func(t *testing.T) {
		srv := newServer(t, nil, false)
		s := bridge(t, mcpbridge.Options{URL: srv.URL})
		s.open()
		addr := srv.Listener.Addr().String()
		srv.stop()
		s.callTool(1, "echo", "patient")
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		newServer(t, l, false)
		if got := s.next(); got.text() != "patient" {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("DuringACallIsAnErrorAndNoRepetition", func(t *testing.T) {
		srv := newServer(t, nil, false)
		s := bridge(t, mcpbridge.Options{URL: srv.URL})
		s.open()
		s.callTool(1, "wait", "x")
		await(t, srv.begun, "the call")
		srv = again(t, srv)
		got := s.next()
		if got.ID != 1.0 || got.Error == nil || !strings.Contains(got.Error.Message, "it may have been carried out") {
			t.Errorf("got %+v", got)
		}
		s.callTool(2, "echo", "after")
		if got := s.next(); got.text() != "after" {
			t.Errorf("got %+v", got)
		}
		if n := srv.calls.Load(); n != 1 {
			t.Errorf("the new server saw %d calls, want 1", n)
		}
	})

	t.Run("ThatNeverComesIsAnError", func(t *testing.T) {
		srv := newServer(t, nil, false)
		s := bridge(t, mcpbridge.Options{URL: srv.URL, Patience: 100 * time.Millisecond})
		s.open()
		srv.stop()
		s.callTool(1, "echo", "x")
		if got := s.next(); got.ID != 1.0 || got.Error == nil || !strings.Contains(got.Error.Message, "cannot be reached") {
			t.Errorf("got %+v", got)
		}
		if err := s.end(); err != nil {
			t.Error("Run:", err)
		}
	})
}
