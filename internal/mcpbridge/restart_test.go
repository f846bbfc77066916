// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge_test

import (
	"io"
	"net"
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
		<-srv.begun
		s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		<-srv.ended
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
		if err := <-s.ended; err != nil {
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
		<-srv.begun
		s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		<-srv.ended
		if err := s.end(); err != nil {
			t.Error("Run:", err)
		}
	})
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
		<-srv.begun
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
