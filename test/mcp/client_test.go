// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/internal/packagestest"
)

// client is a client of MCP's, as far as the tests ask something of it. It is safe for
// concurrent use.
type client interface {
	tools(context.Context) ([]string, error)
	// call calls a tool. The context's end is what the client tells its server of as
	// it tells of a user's change of mind.
	call(ctx context.Context, tool string, args map[string]any) (answer, error)
}

// answer is what a model would see.
type answer struct {
	text    string
	images  int
	isError bool
}

// goClient is a client by the Go SDK.
type goClient struct{ session *sdk.ClientSession }

// openGo opens a session. version is the newest that it speaks; "": that of the SDK.
func openGo(t *testing.T, transport sdk.Transport, version string) client {
	t.Helper()
	return openGoWith(t, transport, version, nil)
}

// openGoWith is openGo with what the client can do besides.
func openGoWith(t *testing.T, transport sdk.Transport, version string, can *sdk.ClientOptions) client {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test-go", Version: "1"}, can)
	var o *sdk.ClientSessionOptions
	if version != "" {
		o = &sdk.ClientSessionOptions{ProtocolVersion: version}
	}
	session, err := c.Connect(t.Context(), transport, o)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = session.Close() }) // what it says of a server that is fine is the tests' business before
	return goClient{session}
}

func (c goClient) tools(ctx context.Context) ([]string, error) {
	r, err := c.session.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, tool := range r.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (c goClient) call(ctx context.Context, tool string, args map[string]any) (answer, error) {
	r, err := c.session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return answer{}, err
	}
	a := answer{isError: r.IsError}
	for _, part := range r.Content {
		switch part := part.(type) {
		case *sdk.TextContent:
			a.text += part.Text + "\n"
		case *sdk.ImageContent:
			a.images++
		}
	}
	return a, nil
}

// bearer puts a token on requests.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// nodeClient is a script of clients/, which is asked by lines, see clients/lines.mjs.
type nodeClient struct {
	in     io.Writer
	broken chan struct{} // closed when it says nothing any more

	mu      sync.Mutex // guards what follows, and writes to in
	last    int
	waiting map[int]chan line
}

// line is what such a script says.
type line struct {
	ID      int      `json:"id"`
	Names   []string `json:"names"`
	Text    string   `json:"text"`
	IsError bool     `json:"isError"`
	Error   string   `json:"error"`
}

// openNode starts a script and waits until it is connected.
func openNode(t *testing.T, p packagestest.NPM, s *server, script string, args ...string) client {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("clients", script))
	if err != nil {
		t.Fatal(err)
	}
	cmd := p.Command(context.WithoutCancel(t.Context()), script, args...)
	cmd.Env = append(os.Environ(), s.env...)
	cmd.Env = append(cmd.Env, "PACKAGES="+p.Dir, "TOKEN="+s.token)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	connected := make(chan line, 1)
	c := &nodeClient{in: in, broken: make(chan struct{}), waiting: map[int]chan line{0: connected}}
	go func() {
		defer close(c.broken)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			c.take(sc.Bytes())
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		<-c.broken
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("%s ended with %v\n%s", script, err, log.Bytes())
		}
	})
	select {
	case <-connected:
	case <-c.broken:
		t.Fatal("it did not connect")
	}
	return c
}

// take gives an answer to who waits for it.
func (c *nodeClient) take(b []byte) {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		l.Error = fmt.Sprintf("it said %q", b)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.waiting[l.ID]; w != nil {
		w <- l
		delete(c.waiting, l.ID)
	}
}

func (c *nodeClient) say(ask map[string]any) error {
	b, err := json.Marshal(ask)
	if err == nil {
		_, err = c.in.Write(append(b, '\n'))
	}
	return err
}

func (c *nodeClient) ask(ctx context.Context, ask map[string]any) (line, error) {
	w := make(chan line, 1)
	c.mu.Lock()
	c.last++
	id := c.last
	ask["id"], c.waiting[id] = id, w
	err := c.say(ask)
	c.mu.Unlock()
	if err != nil {
		return line{}, err
	}
	select {
	case <-ctx.Done():
		c.mu.Lock()
		err := c.say(map[string]any{"cancel": id})
		c.mu.Unlock()
		return line{}, errors.Join(ctx.Err(), err)
	case <-c.broken:
		return line{}, errors.New("the client ended")
	case l := <-w:
		if l.Error != "" {
			return line{}, errors.New(l.Error)
		}
		return l, nil
	}
}

func (c *nodeClient) tools(ctx context.Context) ([]string, error) {
	l, err := c.ask(ctx, map[string]any{"list": true})
	return l.Names, err
}

func (c *nodeClient) call(ctx context.Context, tool string, args map[string]any) (answer, error) {
	l, err := c.ask(ctx, map[string]any{"tool": tool, "args": args})
	return answer{text: l.Text, isError: l.IsError}, err
}

// onceClient is a program that makes one call and ends.
type onceClient struct {
	list   func(context.Context) *exec.Cmd
	invoke func(ctx context.Context, tool, args string) *exec.Cmd
}

// said is what such a program prints: the result, what it is wrapped in, or its
// structured part alone, as JSON that stands in raw.
type said struct {
	Tools   []struct{ Name string }
	Content []struct{ Text string }
	IsError bool
	TaskID  string
	Result  *said
	raw     string
}

// run runs one, which may fail when the tool did.
func (onceClient) run(cmd *exec.Cmd) (*said, error) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // as a user's Ctrl-C
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	var r said
	if bad := json.Unmarshal(out, &r); bad != nil {
		return nil, fmt.Errorf("%w: %w\n%s%s", bad, err, out, log.Bytes())
	}
	if r.Result != nil {
		r = *r.Result
	}
	if err != nil && !r.IsError {
		return nil, fmt.Errorf("%w\n%s%s", err, out, log.Bytes())
	}
	if r.TaskID != "" {
		return nil, fmt.Errorf("it took so long that it became a task: %s", out)
	}
	r.raw = string(out)
	return &r, nil
}

func (c onceClient) tools(ctx context.Context) ([]string, error) {
	r, err := c.run(c.list(ctx))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, tool := range r.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (c onceClient) call(ctx context.Context, tool string, args map[string]any) (answer, error) {
	b, err := json.Marshal(args)
	if err != nil {
		return answer{}, err
	}
	r, err := c.run(c.invoke(ctx, tool, string(b)))
	if err != nil {
		return answer{}, err
	}
	if r.Content == nil {
		return answer{text: r.raw, isError: r.IsError}, nil
	}
	var texts []string
	for _, part := range r.Content {
		texts = append(texts, part.Text)
	}
	return answer{text: strings.Join(texts, "\n"), isError: r.IsError}, nil
}

// inspector is the Inspector's command line, with what says where the server is.
func inspector(p packagestest.NPM, s *server, where ...string) client {
	run := func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := p.Command(ctx, "@modelcontextprotocol/inspector/clients/launcher/build/index.js",
			append(append([]string{"--cli"}, where...), append(args, "--format", "json")...)...)
		cmd.Env = append(os.Environ(), s.env...)
		return cmd
	}
	return onceClient{
		// strict: a schema that some model's API refuses is an error.
		list: func(ctx context.Context) *exec.Cmd { return run(ctx, "--method", "tools/list", "--strict") },
		invoke: func(ctx context.Context, tool, args string) *exec.Cmd {
			return run(ctx, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", args)
		},
	}
}

// mcporter is its command line, with a file that says what the server is.
func mcporter(t *testing.T, p packagestest.NPM, s *server, entry map[string]any) client {
	t.Helper()
	b, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"box": entry}, "imports": []string{}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mcporter.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := p.Command(ctx, "mcporter/dist/cli.js", append([]string{"--config", file}, args...)...)
		cmd.Env = append(os.Environ(), s.env...)
		return cmd
	}
	return onceClient{
		list: func(ctx context.Context) *exec.Cmd { return run(ctx, "list", "box", "--json") },
		invoke: func(ctx context.Context, tool, args string) *exec.Cmd {
			return run(ctx, "call", "box."+tool, "--args", args, "--output", "json")
		},
	}
}
