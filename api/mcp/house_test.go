// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/mcp"
	"sandpit.dev/api/mcp/profile/sandboxd"
	"sandpit.dev/api/service"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/skills"
	"sandpit.dev/fault"
	"sandpit.dev/network/ask"
	"sandpit.dev/network/permit"
	"sandpit.dev/network/preset"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/sqlstore"
)

// The versions that stand for the two eras.
const (
	handshake = "2025-11-25"
	stateless = "2026-07-28"
)

// house is an engine over real neighbours behind a guard and the coat.
type house struct {
	t       testing.TB
	engine  *engine.Engine
	runs    *runs.Runner
	code    *code.Service
	inside  service.Files // files of sandboxes
	store   *sqlstore.Store
	handler *mcp.Handler
	url     string
	http    *http.Client
}

// tokens are callers by their secrets.
type tokens map[string]access.Caller

func (k tokens) Admit(_ context.Context, token string) (access.Caller, context.Context, func(), error) {
	c, err := k.check(token)
	return c, context.Background(), func() {}, err
}

func (k tokens) check(token string) (access.Caller, error) {
	if c, ok := k[token]; ok {
		return c, nil
	}
	if id, ok := strings.CutPrefix(token, "t-caged-"); ok { // a token of one sandbox
		return access.Caller{Project: "default", Sandbox: sandbox.ID(id), Actor: "sandbox:caged", TokenID: token, Scopes: access.SandboxScopes()}, nil
	}
	return access.Caller{}, fault.New(fault.Unauthenticated, "the token is not valid")
}

var write = []access.Scope{access.SandboxesRead, access.SandboxesWrite}

// callers are who may call: two of a project, one that may only read, and a
// stranger with another project.
var callers = tokens{
	"t-alice":    {Project: "default", Actor: "alice", TokenID: "alice", Scopes: write},
	"t-admin":    {Project: "default", Actor: "alice", TokenID: "admin", Scopes: []access.Scope{access.Admin}},
	"t-server":   {Project: "default", Actor: "admin-token", Scopes: []access.Scope{access.ServerAdmin}},
	"t-bob":      {Project: "default", Actor: "bob/2", TokenID: "bob", Scopes: write},
	"t-profiled": {Project: "default", Actor: "alice", TokenID: "profiled", Scopes: write, Profile: sandboxd.Name},
	"t-reader":   {Project: "default", Actor: "reader", TokenID: "reader", Scopes: []access.Scope{access.SandboxesRead}},
	"t-narrow":   {Project: "default", Actor: "narrow", TokenID: "narrow", Scopes: append([]access.Scope{access.ToolsCode, access.ToolsFiles}, write...)},
	"t-stranger": {Project: "other", Actor: "stranger", TokenID: "stranger", Scopes: write},
}

func open(t testing.TB) *house {
	t.Helper()
	return openWith(t)
}

// openWith is open with groups of tools switched on.
func openWith(t testing.TB, groups ...string) *house {
	t.Helper()
	s := enginetest.Start(t, t.TempDir())
	h := &house{t: t, engine: s.Engine, inside: s.Files, runs: s.Runs, code: s.Code, store: s.Store, http: client(t)}
	h.handler, h.url = serve(t, h.engine, h.inside, h.runs, h.code, groups...)
	return h
}

// noRequests takes none, though it says that it does.
type noRequests struct{ service.Requests }

func (noRequests) Asks() bool { return true }

// deskOf returns the desk of an engine, or noRequests for a test's own engine.
func deskOf(e service.Engine) service.Requests {
	real, ok := e.(*engine.Engine)
	if !ok {
		return noRequests{}
	}
	set, err := preset.New(preset.Options{})
	if err != nil {
		panic(err)
	}
	return ask.NewDesk(real, func() permit.Rules { return permit.Rules{Presets: set} }, nil)
}

// noSkills keeps none.
type noSkills struct{ service.Skills }

// skillsOf returns the skills of an engine, or noSkills for a test's own engine.
func skillsOf(e service.Engine) service.Skills {
	if real, ok := e.(*engine.Engine); ok {
		return skills.New(real, skills.Options{})
	}
	return noSkills{}
}

// portsOf returns the ports of an engine; of a test's own those that it lists, if it does.
func portsOf(e service.Engine) service.Ports {
	switch e := e.(type) {
	case *engine.Engine:
		return ports.New(e)
	case portLister:
		return listedPorts{of: e}
	}
	return listedPorts{}
}

type portLister interface {
	Ports(ctx context.Context, c access.Caller, ref string) ([]sandbox.Port, bool, error)
}

// listedPorts are ports that are listed alone.
type listedPorts struct {
	allPorts
	of portLister
}

func (p listedPorts) Ports(ctx context.Context, c access.Caller, ref string) ([]sandbox.Port, bool, error) {
	return p.of.Ports(ctx, c, ref)
}

// allPorts is service.Ports under a name that is not that of one of its methods.
type allPorts = service.Ports

func serve(t testing.TB, e service.Engine, inside service.Files, r service.Runs, c service.Sessions, groups ...string) (_ *mcp.Handler, url string) {
	t.Helper()
	files, err := filelink.New(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	services := service.Of(e, inside, portsOf(e), c, r, deskOf(e), skillsOf(e))
	if own, ok := e.(service.Images); ok { // a test's own
		services.Images = own
	}
	return serveWith(t, mcp.Options{Services: services, Version: "test", Groups: groups, Files: files, Previews: previews{}})
}

// allImages is service.Images under a name that is not that of one of its methods.
type allImages = service.Images

// serveWith serves a handler with these options, and the guard's callers.
func serveWith(t testing.TB, o mcp.Options) (_ *mcp.Handler, url string) {
	t.Helper()
	o.Caller = guard.Caller
	h, err := mcp.New(o)
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Options{Tokens: callers})
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(g.Wrap("mcp", h))
	t.Cleanup(func() {
		h.Close()
		s.Close()
	})
	return h, s.URL
}

func client(t testing.TB) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// previews makes links that show what they are of.
type previews struct{}

func (previews) Token(p ports.Preview) string {
	return fmt.Sprintf("token-%s-%d", p.Sandbox, p.Port)
}

func (previews) Addresses(r *http.Request, id string, port int) (address, path string) {
	return fmt.Sprintf("http://%d-%s.example/", port, id), guard.BaseURL(r) + fmt.Sprintf("/preview/%s/%d/", id, port)
}

// bearer puts a token on every request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// session is a client with a token, of the era that version is of.
func (h *house) session(token, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	h.t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	s, err := c.Connect(h.t.Context(), &sdk.StreamableClientTransport{
		Endpoint: h.url, HTTPClient: &http.Client{Transport: bearer{token, h.http.Transport}}, MaxRetries: -1, DisableStandaloneSSE: true,
	}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		h.t.Fatal("connect:", err)
	}
	h.t.Cleanup(func() { _ = s.Close() }) // a server that went away first is fine
	return s
}

func (h *house) alice() *sdk.ClientSession { return h.session("t-alice", handshake, nil) }

type arguments map[string]any

// call calls a tool that has to be answered, by success or error.
func call(t testing.TB, s *sdk.ClientSession, tool string, args arguments) *sdk.CallToolResult {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return res
}

// ok calls a tool that has to work, and gives its text.
func ok(t testing.TB, s *sdk.ClientSession, tool string, args arguments) string {
	t.Helper()
	res := call(t, s, tool, args)
	if res.IsError {
		t.Fatalf("%s %v: %s", tool, args, text(t, res))
	}
	return text(t, res)
}

func text(t testing.TB, res *sdk.CallToolResult) string {
	t.Helper()
	if len(res.Content) == 0 {
		t.Fatal("the result has no content")
	}
	c, ok := res.Content[0].(*sdk.TextContent)
	if !ok {
		t.Fatalf("the result begins with %T and not with text", res.Content[0])
	}
	return c.Text
}

func wantParts(t testing.TB, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("the answer lacks %q:\n%s", p, got)
		}
	}
}

func verdict(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}

func newServer(t testing.TB, h http.Handler) (url string) {
	s := startServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func jsonOf(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
