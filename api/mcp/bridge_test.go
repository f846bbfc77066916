// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/mcp"
	"sandpit.dev/api/service"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/skills"
	"sandpit.dev/image"
	"sandpit.dev/internal/mcpbridge"
)

// TestThroughTheBridge is a day's work over stdio, in both eras.
func TestThroughTheBridge(t *testing.T) {
	t.Parallel()
	for _, version := range []string{handshake, stateless} {
		t.Run(version, func(t *testing.T) {
			h := open(t)
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			ended := make(chan error, 1)
			go func() {
				err := mcpbridge.Run(t.Context(), inR, outW, mcpbridge.Options{URL: h.url, Token: "t-alice", HTTP: h.http})
				outW.Close()
				ended <- err
			}()
			c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
			s, err := c.Connect(t.Context(), &sdk.IOTransport{Reader: outR, Writer: inW}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("speaks %s, want %s", got, version)
			}
			ok(t, s, "write_file", arguments{"path": "a.sh", "content": "echo $((6*7))\n"})
			wantParts(t, ok(t, s, "run_command", arguments{"command": "sh a.sh"}), "exit 0", "\n42")
			var calls sync.WaitGroup
			for i := range 20 {
				calls.Go(func() {
					res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "run_command", Arguments: arguments{"command": fmt.Sprint("echo call ", i)}})
					if err != nil {
						t.Error(err)
						return
					}
					wantParts(t, text(t, res), fmt.Sprint("\ncall ", i))
				})
			}
			calls.Wait()
			if err := s.Close(); err != nil {
				t.Error("close:", err)
			}
			if err := <-ended; err != nil {
				t.Error("the bridge:", err)
			}
		})
	}
}

func TestNewRefusesWhatIsMissing(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, o := range map[string]mcp.Options{
		"Services": {Caller: guard.Caller},
		"Caller":   {Services: service.Of(h.engine, h.inside, ports.New(h.engine), h.code, h.runs, deskOf(h.engine), skills.New(h.engine, skills.Options{}))},
	} {
		if _, err := mcp.New(o); err == nil {
			t.Errorf("without %s: it was taken", name)
		}
	}
}

// TestWithoutAGuardNobodyIsServed shows that forgetting the guard opens nothing.
func TestWithoutAGuardNobodyIsServed(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := newServer(t, h.handler)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer t-alice")
	resp, err := h.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("got %s, want 401", resp.Status)
	}
}

// broken is an engine whose every method panics, but for the list of images: a session reads
// it as it begins.
type broken struct {
	service.Engine
	allImages
}

func (broken) Images(context.Context, access.Caller) ([]image.Status, error) { return nil, nil }

func TestAPanicIsAnAnswerThatTellsNothing(t *testing.T) {
	t.Parallel()
	_, url := serve(t, broken{}, struct{ service.Files }{}, struct{ service.Runs }{}, struct{ service.Sessions }{})
	h := &house{t: t, url: url, http: client(t)}
	for _, version := range []string{handshake, stateless} {
		res := call(t, h.session("t-alice", version, nil), "run_command", arguments{"command": "ls"})
		got := text(t, res)
		if !res.IsError || strings.Contains(got, "nil pointer") {
			t.Errorf("got %q", got)
		}
		wantParts(t, got, "error (internal)", "next: ", "in the server's log")
	}
}
