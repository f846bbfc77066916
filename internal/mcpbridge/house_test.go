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
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"sandpit.dev/internal/mcpbridge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	handshake = "2025-11-25"
	stateless = "2026-07-28"
)

// server is an MCP server with tools that tests hold and let go.
type server struct {
	*httptest.Server
	mcp     *mcp.Server
	begun   chan string   // names of calls of wait that began
	release chan struct{} // closed: calls of wait end
	ended   chan string   // calls of wait whose context ended
	once    sync.Once
	calls   atomic.Int64
	deletes atomic.Int64
}

type input struct {
	Name string `json:"name"`
}

// newServer serves on listener (nil: any), statefully, or statelessly for the
// new era.
func newServer(t *testing.T, listener net.Listener, modern bool) *server {
	t.Helper()
	s := &server{begun: make(chan string, 1000), release: make(chan struct{}), ended: make(chan string, 1000)}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{}})
	mcp.AddTool(s.mcp, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		s.calls.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Name}}}, nil, nil
	})
	mcp.AddTool(s.mcp, &mcp.Tool{Name: "wait"}, func(ctx context.Context, req *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		s.calls.Add(1)
		if token := req.Params.GetProgressToken(); token != nil {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1, Message: "begun"})
		}
		s.begun <- in.Name
		select {
		case <-ctx.Done():
			s.ended <- in.Name
			return nil, nil, ctx.Err()
		case <-s.release:
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Name}}}, nil, nil
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{Stateless: modern, PropagateRequestCancellation: modern})
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			s.deletes.Add(1)
		}
		if got := r.Header.Get("Authorization"); got != "Bearer secret" {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	if listener != nil {
		_ = s.Listener.Close()
		s.Listener = listener
	}
	s.Start()
	t.Cleanup(s.stop)
	return s
}

// letGo lets calls of wait end, those to come as well.
func (s *server) letGo() { s.once.Do(func() { close(s.release) }) }

// stop ends the server as if it had been killed: connections break. Only then
// is it tidied up.
func (s *server) stop() {
	_ = s.Config.Close() // the listener first: no connection gets in
	s.Close()
	s.letGo()
	for session := range s.mcp.Sessions() {
		_ = session.Close()
	}
}

// stdio is a bridge with both ends in the test's hands.
type stdio struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *bufio.Reader
	raw   *io.PipeReader
	ended chan error
}

func bridge(t *testing.T, o mcpbridge.Options) *stdio {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s := &stdio{t: t, in: inW, out: bufio.NewReader(outR), raw: outR, ended: make(chan error, 1)}
	if o.Token == "" {
		o.Token = "secret"
	}
	go func() {
		err := mcpbridge.Run(t.Context(), inR, outW, o)
		outW.Close()
		s.ended <- err
	}()
	hung := time.AfterFunc(waitBound, func() { _ = inR.CloseWithError(errHung); _ = outW.CloseWithError(errHung) })
	t.Cleanup(func() { hung.Stop(); inW.Close(); outR.Close() })
	return s
}

// waitBound is the end of any wait of a test: what takes longer hangs.
const waitBound = 2 * time.Minute

var errHung = errors.New("the bridge has hung")

// await receives what has to come.
func await[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	hung := time.NewTimer(waitBound)
	defer hung.Stop()
	select {
	case v = <-c:
	case <-hung.C:
		t.Fatalf("%s: nothing came", what)
	}
	return v
}

func (s *stdio) send(format string, args ...any) {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.in, format+"\n", args...); err != nil {
		s.t.Fatal(err)
	}
}

type reply struct {
	ID     any
	Method string
	Result map[string]any
	Error  *struct {
		Code    int
		Message string
	}
}

// next reads one line, which has to be a message.
func (s *stdio) next() reply {
	s.t.Helper()
	l, err := s.out.ReadString('\n')
	if err != nil {
		s.t.Fatal("read from the bridge:", err)
	}
	var r struct {
		JSONRPC string
		reply
	}
	if err := json.Unmarshal([]byte(l), &r); err != nil || r.JSONRPC != "2.0" {
		s.t.Fatalf("the bridge wrote %q: %v", l, err)
	}
	return r.reply
}

// open makes the handshake.
func (s *stdio) open() {
	s.t.Helper()
	s.send(`{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	if r := s.next(); r.ID != "open" || r.Result["protocolVersion"] != handshake {
		s.t.Fatalf("initialize: got %+v", r)
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (s *stdio) callTool(id int, tool, name string) {
	s.t.Helper()
	s.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"name":%q}}}`, id, tool, name)
}

func (r reply) text() string {
	if r.Error != nil {
		return "error: " + r.Error.Message
	}
	list, _ := r.Result["content"].([]any)
	if len(list) == 0 {
		return ""
	}
	c, _ := list[0].(map[string]any)
	s, _ := c["text"].(string)
	return s
}

// end closes stdin and waits for the bridge's end.
func (s *stdio) end() error {
	s.t.Helper()
	s.in.Close()
	go func() { _, _ = io.Copy(io.Discard, s.raw) }()
	return await(s.t, s.ended, "the end of Run")
}
