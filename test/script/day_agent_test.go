// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// agent is a client of MCP's by the official SDK, in a world: it has an address, a token,
// and what the server's answers say.
type agent struct {
	url, token string
	version    string // of the protocol
	wire       *wire
	session    *sdk.ClientSession
	told       chan string // what the server says of a call that goes on
}

// callBound is how long a call may take in all: far more than any does.
const callBound = 90 * time.Second

// answer is what a tool said, as a model sees it.
type answer struct {
	text   string
	failed bool
	images []*sdk.ImageContent
	links  []*sdk.ResourceLink
}

// wire is the way of a client to its server, which can be cut.
type wire struct {
	world *world

	mu    sync.Mutex
	conns []net.Conn
}

func (w *wire) dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	w.world.in(func() { c, err = new(net.Dialer).DialContext(ctx, network, address) })
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, c)
	return c, nil
}

// cut breaks every connection, without a word.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
	w.conns = nil
}

// bearer puts a token on requests.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// client returns a client of the agent's own; it knows a token, or none.
func (a *agent) client(token string) *http.Client {
	t := &http.Transport{DialContext: a.wire.dial}
	if token == "" {
		return &http.Client{Transport: t}
	}
	return &http.Client{Transport: bearer{token, t}}
}

// connect opens a session, in place of one that broke.
func (a *agent) connect(t *testing.T) {
	t.Helper()
	if a.session != nil {
		_ = a.session.Close() // it is broken already
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "test-agent", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			select {
			case a.told <- r.Params.Message:
			default: // nobody listens
			}
		},
	})
	over := &sdk.StreamableClientTransport{Endpoint: a.url, HTTPClient: a.client(a.token)}
	session, err := c.Connect(t.Context(), over, &sdk.ClientSessionOptions{ProtocolVersion: a.version})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	if got := session.InitializeResult().ProtocolVersion; got != a.version {
		t.Fatalf("the server speaks %s, not %s", got, a.version)
	}
	a.session = session
}

// try calls a tool once. The error says that the connection broke.
func (a *agent) try(t *testing.T, tool string, args map[string]any) (answer, error) {
	ctx, cancel := context.WithTimeout(t.Context(), callBound)
	defer cancel()
	p := &sdk.CallToolParams{Name: tool, Arguments: args}
	p.SetProgressToken("of " + tool)
	r, err := a.session.CallTool(ctx, p)
	if err != nil {
		return answer{}, err
	}
	out := answer{failed: r.IsError}
	for _, part := range r.Content {
		switch part := part.(type) {
		case *sdk.TextContent:
			out.text += part.Text + "\n"
		case *sdk.ImageContent:
			out.images = append(out.images, part)
		case *sdk.ResourceLink:
			out.links = append(out.links, part)
		}
	}
	return out, nil
}

// ask calls a tool, which has to work, and to say all of these.
func (a *agent) ask(t *testing.T, tool string, args map[string]any, says ...string) answer {
	t.Helper()
	got, err := a.try(t, tool, args)
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
	if got.failed {
		t.Fatalf("%s %v: %s", tool, args, got.text)
	}
	for _, want := range says {
		if !strings.Contains(got.text, want) {
			t.Fatalf("%s %v: it says\n%s\nand not %q", tool, args, got.text, want)
		}
	}
	t.Logf("%s %v\n%s", tool, args, got.text)
	return got
}

// pending is a call that is under way.
type pending struct {
	tool  string
	args  map[string]any
	ended chan struct{} // closed; then these hold
	got   answer
	err   error
}

// begin begins a call, and does not wait for its end.
func (a *agent) begin(t *testing.T, tool string, args map[string]any) *pending {
	p := &pending{tool: tool, args: args, ended: make(chan struct{})}
	for len(a.told) > 0 {
		<-a.told // of another call
	}
	go func() {
		defer close(p.ended)
		p.got, p.err = a.try(t, tool, args)
	}()
	return p
}

// hear waits until the server says that of a call that is under way.
func (a *agent) hear(t *testing.T, p *pending, want string) {
	t.Helper()
	for {
		select {
		case line := <-a.told:
			if strings.Contains(line, want) {
				return
			}
		case <-p.ended:
			t.Fatalf("%s %v: it ended with %v and %q, and never told of %q", p.tool, p.args, p.err, p.got.text, want)
		}
	}
}

// next is the call that an answer names to go on with.
var next = regexp.MustCompile(`(?m)^next: (\w+) with (\{.*?\})(,.*)?$`)

// next finds it.
func (g answer) next(t *testing.T) (tool string, args map[string]any) {
	t.Helper()
	m := next.FindStringSubmatch(g.text)
	if m == nil {
		t.Fatalf("there is no next call in:\n%s", g.text)
	}
	if err := json.Unmarshal([]byte(m[2]), &args); err != nil {
		t.Fatalf("%s: %v", m[0], err)
	}
	return m[1], args
}

// section is one part of an answer, as it came out of the sandbox.
func (g answer) section(name string) string {
	_, rest, ok := strings.Cut(g.text, "\n--- "+name)
	if !ok {
		return ""
	}
	_, rest, _ = strings.Cut(rest, "\n")
	rest, _, _ = strings.Cut(rest, "\n--- ")
	return strings.TrimSuffix(rest, "\n") + "\n"
}

// fetch gets what a link is to, as anybody would who has it and no token.
func (a *agent) fetch(t *testing.T, link string) (status int, kind string, body []byte) {
	t.Helper()
	c := a.client("")
	defer c.CloseIdleConnections()
	r, err := c.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	body, err = io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		t.Fatalf("%s: %v", link, err)
	}
	return r.StatusCode, r.Header.Get("Content-Type"), body
}
