// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// handshake is the newest revision of the older era.
const handshake = "2025-11-25"

// goneBound is how long what was cancelled may go on: a client that broke off without
// a word may come back for half a minute.
const goneBound = 60 * time.Second

func TestClientsOfTheWorldWorkWithASandbox(t *testing.T) {
	s := serve(t)
	program := filepath.Join(bin, "sandpit")
	asBearer := &http.Client{Transport: bearer(s.token)}
	authorization := "Authorization: Bearer " + s.token
	over := func(c *http.Client) sdk.Transport {
		return &sdk.StreamableClientTransport{Endpoint: s.url, HTTPClient: c}
	}
	// remote is mcp-remote, a server over stdio that passes all on.
	remote := func(t *testing.T, strategy string) client {
		cmd := needPackages(t).Command(context.WithoutCancel(t.Context()), "mcp-remote/dist/proxy.js", s.url, "--header", authorization, "--transport", strategy, "--allow-http")
		cmd.Env = append(cmd.Environ(), s.env...)
		return openGo(t, &sdk.CommandTransport{Command: cmd}, handshake)
	}
	witness := openGo(t, over(asBearer), "")
	for _, one := range []struct {
		name string
		open func(*testing.T) client
		// silent: it goes without a word that would end its calls. Over stdio the
		// server answers what it has read.
		silent bool
	}{
		{name: "go http", open: func(t *testing.T) client { return openGo(t, over(asBearer), "") }},
		{name: "go http handshake", open: func(t *testing.T) client { return openGo(t, over(asBearer), handshake) }},
		{name: "go sse", open: func(t *testing.T) client {
			return openGo(t, &sdk.SSEClientTransport{Endpoint: s.url, HTTPClient: asBearer}, handshake)
		}},
		{name: "go stdio", open: func(t *testing.T) client { return openGo(t, &sdk.CommandTransport{Command: s.command("mcp")}, "") }},
		{name: "go stdio handshake", open: func(t *testing.T) client {
			return openGo(t, &sdk.CommandTransport{Command: s.command("mcp")}, handshake)
		}},
		{name: "typescript 1 http", open: func(t *testing.T) client { return openNode(t, needPackages(t), s, "v1.mjs", "http", s.url) }},
		{name: "typescript 1 sse", open: func(t *testing.T) client { return openNode(t, needPackages(t), s, "v1.mjs", "sse", s.url) }},
		{name: "typescript 1 stdio", open: func(t *testing.T) client { return openNode(t, needPackages(t), s, "v1.mjs", "stdio", program, "mcp") }},
		{name: "typescript 2 http", open: func(t *testing.T) client { return openNode(t, needPackages(t), s, "v2.mjs", "auto", "http", s.url) }},
		{name: "typescript 2 http handshake", open: func(t *testing.T) client {
			return openNode(t, needPackages(t), s, "v2.mjs", "legacy", "http", s.url)
		}},
		{name: "typescript 2 sse", open: func(t *testing.T) client { return openNode(t, needPackages(t), s, "v2.mjs", "legacy", "sse", s.url) }},
		{name: "typescript 2 stdio", open: func(t *testing.T) client {
			return openNode(t, needPackages(t), s, "v2.mjs", "auto", "stdio", program, "mcp")
		}},
		{name: "mcp-remote http", open: func(t *testing.T) client { return remote(t, "http-only") }},
		{name: "mcp-remote sse", open: func(t *testing.T) client { return remote(t, "sse-only") }},
		{name: "inspector http", open: func(t *testing.T) client {
			return inspector(needPackages(t), s, s.url, "--transport", "http", "--header", authorization, "--protocol-era", "modern")
		}},
		{name: "inspector http handshake", open: func(t *testing.T) client {
			return inspector(needPackages(t), s, s.url, "--transport", "http", "--header", authorization, "--protocol-era", "legacy")
		}},
		{name: "inspector sse", open: func(t *testing.T) client {
			return inspector(needPackages(t), s, s.url, "--transport", "sse", "--header", authorization)
		}},
		{name: "inspector stdio", silent: true, open: func(t *testing.T) client {
			where := []string{program, "mcp", "--transport", "stdio"}
			for _, v := range s.env { // of its own environment it passes little
				where = append(where, "-e", v)
			}
			return inspector(needPackages(t), s, where...)
		}},
		{name: "mcporter http", open: func(t *testing.T) client {
			return mcporter(t, needPackages(t), s, map[string]any{"url": s.url, "headers": map[string]string{"Authorization": "Bearer " + s.token}})
		}},
		{name: "mcporter stdio", silent: true, open: func(t *testing.T) client {
			return mcporter(t, needPackages(t), s, map[string]any{"command": program, "args": []string{"mcp"}})
		}},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			tour(t, one.open(t), witness, strings.ReplaceAll(one.name, " ", "-"), !one.silent)
		})
	}
}

// handle finds the process in what run_command says of one in the background.
var handle = regexp.MustCompile(`process ([a-z0-9]{6,})`)

// tour uses a sandbox of a name as an agent does. What became of a command that was
// cancelled the witness tells.
func tour(t *testing.T, c, witness client, name string, cancels bool) {
	tools, err := c.tools(t.Context())
	if err != nil {
		t.Fatalf("list the tools: %v", err)
	}
	for _, want := range []string{"create_sandbox", "run_command", "read_process", "delete_sandbox"} {
		if !slices.Contains(tools, want) {
			t.Errorf("there is no %s among %q", want, tools)
		}
	}
	ask := func(c client, tool string, args map[string]any) answer {
		t.Helper()
		a, err := c.call(t.Context(), tool, args)
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		return a
	}
	must := func(c client, want, tool string, args map[string]any) string {
		t.Helper()
		a := ask(c, tool, args)
		if a.isError || !strings.Contains(a.text, want) {
			t.Fatalf("%s %v: %+v, want %q", tool, args, a, want)
		}
		return a.text
	}
	must(c, name, "create_sandbox", map[string]any{"name": name})
	must(c, "it is 42", "run_command", map[string]any{"sandbox": name, "command": `echo "it is $((6 * 7))"`})
	began := must(c, "", "run_command", map[string]any{"sandbox": name, "command": `read x; echo "it was $x"`, "background": true})
	process := handle.FindStringSubmatch(began)
	if process == nil {
		t.Fatalf("there is no process in %q", began)
	}
	must(witness, "", "write_process", map[string]any{"sandbox": name, "process": process[1], "input": "given\n"})
	must(c, "it was given", "read_process", map[string]any{"sandbox": name, "process": process[1], "wait_seconds": 20})

	a := ask(c, "run_command", map[string]any{"sandbox": "no-such-" + name, "command": "true"})
	if !a.isError || !strings.Contains(a.text, "no-such-"+name) || !strings.Contains(a.text, "create_sandbox") {
		t.Errorf("of a sandbox that is none the client hears %+v", a)
	}
	if cancels {
		cancelled(t, c, witness, name)
	}
	must(c, name, "delete_sandbox", map[string]any{"sandbox": name})
	if a := ask(witness, "list_sandboxes", map[string]any{}); strings.Contains(a.text, name+" ") {
		t.Errorf("it is still there: %s", a.text)
	}
}

// cancelled checks that a client's change of mind ends the command that it waits for.
func cancelled(t *testing.T, c, witness client, name string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := c.call(ctx, "run_command", map[string]any{"sandbox": name, "command": "exec sleep 987"})
		ended <- err
	}()
	sleeps := map[string]any{"sandbox": name, "command": `cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^sleep$'`}
	until(t, witness, sleeps, "\n1\n")
	cancel()
	if err := <-ended; err == nil {
		t.Error("the call was answered")
	}
	until(t, witness, sleeps, "\n0\n")
}

// until asks again and again, until the answer has a text.
func until(t *testing.T, c client, args map[string]any, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), goneBound)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last := "nothing"
	for {
		a, err := c.call(ctx, "run_command", args)
		if err == nil {
			last = a.text
		}
		if err == nil && strings.Contains(strings.TrimRight(a.text, "\n")+"\n", want) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%v: it said %q at last, not %q", args, last, want)
		}
	}
}
