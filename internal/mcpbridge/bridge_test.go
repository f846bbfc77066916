// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/internal/mcpbridge"
)

func TestPasses(t *testing.T) {
	t.Run("ASessionWithItsHeaders", func(t *testing.T) {
		srv := newServer(t, nil, false)
		s := bridge(t, mcpbridge.Options{URL: srv.URL})
		s.open()
		s.callTool(1, "echo", "hello")
		if got := s.next(); got.ID != 1.0 || got.text() != "hello" {
			t.Errorf("got %+v", got)
		}
		s.send(`{"jsonrpc":"2.0","id":2,"method":"no/such"}`)
		if got := s.next(); got.ID != 2.0 || got.Error == nil {
			t.Errorf("an unknown method: got %+v, want an error", got)
		}
		if err := s.end(); err != nil {
			t.Error("Run:", err)
		}
		if srv.deletes.Load() != 1 {
			t.Errorf("the session was ended %d times, want once", srv.deletes.Load())
		}
	})

	t.Run("WhatTheServerSaysByItself", func(t *testing.T) {
		srv := newServer(t, nil, false)
		s := bridge(t, mcpbridge.Options{URL: srv.URL})
		s.open()
		// The server pings on the stream that the bridge holds open for it.
		ponged := make(chan error, 1)
		go func() {
			for session := range srv.mcp.Sessions() {
				for {
					err := session.Ping(t.Context(), nil)
					if err == nil || t.Context().Err() != nil {
						ponged <- err
						return
					}
				}
			}
		}()
		ping := s.next()
		if ping.Method != "ping" {
			t.Fatalf("got %+v", ping)
		}
		id, err := json.Marshal(ping.ID)
		if err != nil {
			t.Fatal(err)
		}
		s.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
		if err := await(t, ponged, "the answer to the ping"); err != nil {
			t.Error("the ping:", err)
		}
	})

	t.Run("TheSdksOwnClientInBothEras", func(t *testing.T) {
		for _, version := range []string{handshake, stateless} {
			srv := newServer(t, nil, version == stateless)
			s := bridge(t, mcpbridge.Options{URL: srv.URL})
			heard := make(chan string, 1)
			c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { heard <- r.Params.Message },
			})
			session, err := c.Connect(t.Context(), &mcp.IOTransport{Reader: io.NopCloser(s.out), Writer: s.in}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			if got := session.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("speaks %s, want %s", got, version)
			}
			srv.letGo()
			p := &mcp.CallToolParams{Name: "wait", Arguments: input{"x"}}
			p.SetProgressToken("p")
			if _, err := session.CallTool(t.Context(), p); err != nil {
				t.Error(version, err)
			}
			if got := await(t, heard, "progress"); got != "begun" {
				t.Errorf("%s: heard %q", version, got)
			}
			if _, err := session.ListTools(t.Context(), nil); err != nil {
				t.Error(version, err)
			}
			if err := session.Close(); err != nil {
				t.Error(version, err)
			}
			if err := s.end(); err != nil {
				t.Error("Run:", err)
			}
		}
	})
}

func TestConcurrency(t *testing.T) {
	srv := newServer(t, nil, false)
	s := bridge(t, mcpbridge.Options{URL: srv.URL})
	s.open()
	const calls = 100
	for i := range calls {
		s.callTool(i, "wait", fmt.Sprint(i))
	}
	for range calls {
		await(t, srv.begun, "a call") // all at once: none waits for another
	}
	s.callTool(calls, "echo", "quick")
	if got := s.next(); got.text() != "quick" {
		t.Errorf("a quick call behind %d slow ones: got %+v", calls, got)
	}
	srv.letGo()
	got := make(map[any]string)
	for range calls {
		r := s.next()
		got[r.ID] = r.text()
	}
	for i := range calls {
		if got[float64(i)] != fmt.Sprint(i) {
			t.Errorf("call %d: got %q", i, got[float64(i)])
		}
	}
}

func TestEndOfStdin(t *testing.T) {
	t.Run("AnswersAllThatWasRead", func(t *testing.T) {
		srv := newServer(t, nil, false)
		s := bridge(t, mcpbridge.Options{URL: srv.URL})
		s.open()
		for i := range 10 {
			s.callTool(i, "wait", fmt.Sprint(i))
		}
		s.in.Close()
		for range 10 {
			await(t, srv.begun, "the call")
		}
		srv.letGo()
		seen := make(map[any]bool)
		for range 10 {
			r := s.next()
			if r.Error != nil {
				t.Errorf("got %+v", r)
			}
			seen[r.ID] = true
		}
		if len(seen) != 10 {
			t.Errorf("%d calls were answered, want 10", len(seen))
		}
		if _, err := s.out.ReadByte(); err != io.EOF {
			t.Errorf("after the answers: %v, want the end", err)
		}
		if err := await(t, s.ended, "the end of Run"); err != nil {
			t.Error("Run:", err)
		}
	})

	t.Run("TakesALastLineWithoutAnEnd", func(t *testing.T) {
		srv := newServer(t, nil, false)
		s := bridge(t, mcpbridge.Options{URL: srv.URL})
		s.open()
		if _, err := io.WriteString(s.in, `{"jsonrpc":"2.0","id":5,"method":"ping"}`); err != nil {
			t.Fatal(err)
		}
		s.in.Close()
		if r := s.next(); r.ID != 5.0 || r.Error != nil {
			t.Errorf("got %+v", r)
		}
	})

	t.Run("OfTheContextEndsIt", func(t *testing.T) {
		srv := newServer(t, nil, false)
		ctx, cancel := context.WithCancel(t.Context())
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- mcpbridge.Run(ctx, inR, outW, mcpbridge.Options{URL: srv.URL, Token: "secret"}) }()
		fmt.Fprintln(inW, `{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
		if _, err := bufio.NewReader(outR).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, outR) }()
		fmt.Fprintln(inW, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{"name":"x"}}}`)
		await(t, srv.begun, "the call")
		cancel()
		await(t, srv.ended, "the end of the call") // the call is cancelled with it
		if err := await(t, ended, "the end of Run"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		inW.Close()
		outR.Close()
	})

	t.Run("OfStdoutEndsItToo", func(t *testing.T) {
		srv := newServer(t, nil, false)
		s := bridge(t, mcpbridge.Options{URL: srv.URL})
		s.open()
		s.raw.Close()
		s.callTool(1, "echo", "x")
		if err := await(t, s.ended, "the end of Run"); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("got %v, want %v", err, io.ErrClosedPipe)
		}
	})
}
