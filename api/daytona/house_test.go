// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/daytona"
	"sandpit.dev/api/daytona/objects"
	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/build/contexts"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/events"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/skills"
	"sandpit.dev/fault"
	"sandpit.dev/network/ask"
	"sandpit.dev/network/permit"
	"sandpit.dev/network/preset"
	"sandpit.dev/sandbox"
)

// house is the coat over an engine with a store in a file and a host of the memory runtime.
type house struct {
	t    testing.TB
	made daytona.Options
	*enginetest.Server
	url string
}

// callers are who may call, by their tokens.
type callers map[string]access.Caller

func (k callers) Admit(_ context.Context, token string) (access.Caller, context.Context, func(), error) {
	if c, ok := k[token]; ok {
		return c, context.Background(), func() {}, nil
	}
	return access.Caller{}, nil, nil, fault.New(fault.Unauthenticated, "the token is not valid")
}

var write = access.Caller{Project: access.DefaultProject, Actor: "writer", TokenID: "writer", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}

func who() callers {
	read, other := write, write
	read.Actor, read.TokenID, read.Scopes = "reader", "reader", []access.Scope{access.SandboxesRead}
	other.Project, other.Actor, other.TokenID = "elsewhere", "other", "other"
	return callers{"writer": write, "reader": read, "other": other}
}

// links are addresses that are easy to tell.
type links struct{}

func (links) Token(p ports.Preview) string { return "token-of-" + string(p.Sandbox) }

func (links) Addresses(r *http.Request, id string, _ int) (address, path string) {
	return "http://" + id + ".test/", "http://" + r.Host + "/preview/" + id + "/"
}

func (links) HostToken(id string) string { return "token-of-" + id }

func (links) LinkAddress(*http.Request, string, int) string { return "" }

func (links) LinkPath(r *http.Request, token string, _ int) string {
	return "http://" + r.Host + "/preview/" + token + "/"
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open starts a server for the callers of who.
func open(t testing.TB) *house {
	t.Helper()
	h := parts(t)
	g, err := guard.New(guard.Options{Tokens: who()})
	must(t, err)
	srv := httptest.NewServer(h.behind(g))
	t.Cleanup(srv.Close)
	h.url = srv.URL + daytona.Base
	return h
}

// object is what events have of a record, as far as sockets read it.
func object(record any) any {
	s, ok := record.(*sandbox.Sandbox)
	if !ok {
		return nil
	}
	return v1.Sandbox{Status: string(s.State)}
}

// parts starts what is behind the coat.
func parts(t testing.TB) *house {
	t.Helper()
	var changes *events.Log
	s := enginetest.Start(t, t.TempDir(), func(e *engine.Options) {
		changes = events.New(e.Store, events.Options{Object: object})
		e.Store = changes.Store()
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- changes.Run(ctx) }()
	t.Cleanup(func() { cancel(); must(t, <-ended) })
	presets, err := preset.New(preset.Options{})
	must(t, err)
	files, err := filelink.New(bytes.Repeat([]byte{1}, 32))
	must(t, err)
	sent, err := contexts.Open(contexts.Options{Dir: filepath.Join(t.TempDir(), "contexts")})
	must(t, err)
	o := daytona.Options{Previews: links{}, Files: files, Contexts: sent, Keys: objects.NewKeys(nil), Target: "local", Version: enginetest.Version}
	o.Services = service.Of(s.Creator, s.Files, ports.New(s.Engine), s.Code, s.Runs, ask.NewDesk(s.Engine, func() permit.Rules { return permit.Rules{Presets: presets} }, nil), skills.New(s.Engine, skills.Options{}))
	o.Services.Languages = s.Languages
	o.Services.Events = changes
	return &house{t: t, Server: s, made: o}
}

// behind returns the coat behind a guard. It is closed with the test.
func (h *house) behind(g *guard.Guard) http.Handler {
	h.t.Helper()
	o := h.made
	o.Guard = g
	a, err := daytona.New(o)
	must(h.t, err)
	h.t.Cleanup(a.Close)
	return a
}

// ask makes a request, and returns the status and the body of its answer.
func (h *house) ask(token, method, path, body string, headers ...string) (int, string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	must(h.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	must(h.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(h.t, err)
	return resp.StatusCode, string(text)
}

// problem is what clients read of an error.
type problem struct {
	StatusCode                                 int
	Message, Error, Code, Source, Path, Method string
}

// create makes a sandbox that has to work out, and returns its id. The memory runtime has no network.
func (h *house) create(body string) string {
	h.t.Helper()
	status, text := h.ask("writer", "POST", "/sandbox", body)
	var s struct{ ID string }
	if err := json.Unmarshal([]byte(text), &s); err != nil || status != 200 || s.ID == "" {
		h.t.Fatalf("create: %d %s", status, text)
	}
	return s.ID
}
