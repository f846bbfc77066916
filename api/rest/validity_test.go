// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
	v1 "sandpit.dev/api/v1"
)

// Whatever goes on ends with the token that it was asked for with.
func TestStreamsEndWithTheirToken(t *testing.T) {
	t.Parallel()
	h := open(t)
	box := "/v1/sandboxes/" + h.create().ID
	process := box + "/processes/" + want[v1.Process](h, 201, "POST", box+"/processes", object{"command": "cat", "stream_stdin": true}).ProcessID
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			defer nc.Close()
		}
	}()
	socket := func(path string) func(*testing.T, *house) func() error {
		return func(t *testing.T, h *house) func() error {
			conn, _, err := websocket.Dial(t.Context(), h.url+path, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + h.token}}})
			must(t, err)
			t.Cleanup(func() { _ = conn.CloseNow() })
			return func() error {
				for {
					if _, _, err := conn.Read(t.Context()); err != nil {
						return err
					}
				}
			}
		}
	}
	stream := func(path string) func(*testing.T, *house) func() error {
		return func(t *testing.T, h *house) func() error {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+path, nil)
			must(t, err)
			req.Header.Set("Authorization", "Bearer "+h.token)
			resp, err := plain.Do(req)
			must(t, err)
			t.Cleanup(func() { _ = resp.Body.Close() })
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: got %s", path, resp.Status)
			}
			return func() error {
				_, err := io.Copy(io.Discard, resp.Body)
				return fmt.Errorf("the end: %w", err)
			}
		}
	}
	for name, begin := range map[string]func(*testing.T, *house) func() error{
		"Terminal":      socket(box + "/terminal"),
		"ProcessSocket": socket(process + "/output"),
		"Port":          socket(fmt.Sprintf("%s/ports/%d/connect", box, l.Addr().(*net.TCPAddr).Port)),
		"Output":        stream(process + "/output"),
		"Watch":         stream(box + "/watch?path=/workspace"),
	} {
		for how, end := range map[string]func(access.Caller, access.Token) error{
			"Deleted": func(c access.Caller, token access.Token) error { return h.tokens.Delete(t.Context(), c, "", token.ID) },
			"Expired": nil,
		} {
			t.Run(name+how, func(t *testing.T) {
				admin := access.Caller{Project: access.DefaultProject, Actor: "test", Scopes: []access.Scope{access.ServerAdmin}}
				n := bearer.NewToken{Name: name + how, Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}
				if end == nil {
					n.ExpiresAt = time.Now().Add(time.Second)
				}
				token, secret, err := h.tokens.Create(t.Context(), admin, n)
				must(t, err)
				other := *h
				other.token = secret.Reveal()
				ended := make(chan error, 1)
				wait := begin(t, &other)
				go func() { ended <- wait() }()
				if end != nil {
					must(t, end(admin, token))
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				select {
				case err := <-ended:
					if err == nil || ctx.Err() != nil {
						t.Errorf("it ended with %v", err)
					}
				case <-ctx.Done():
					t.Error("it goes on, and its token is valid no more")
				}
			})
		}
	}
}
