// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/test/mcp/taskstest"
)

func TestAnAgentDoesItsTasksByTheDefaultToolsAlone(t *testing.T) {
	s := serve(t)
	server := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp")
	var dialer net.Dialer
	browser := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", server)
	}}}
	t.Cleanup(browser.CloseIdleConnections)
	for _, task := range taskstest.All() {
		t.Run(task.Name, func(t *testing.T) { task.Run(t, agentOf(openAs(t, s), browser)) })
	}
}

// args are a tool's.
type args = taskstest.Args

// openAs opens a session of the administrator's.
func openAs(t *testing.T, s *server) client {
	t.Helper()
	return openGo(t, &sdk.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer(s.token)}}, "")
}

func agentOf(c client, browser *http.Client) taskstest.Options {
	return taskstest.Options{Browser: browser, Call: func(ctx context.Context, tool string, with map[string]any) (taskstest.Answer, error) {
		a, err := c.call(ctx, tool, with)
		return taskstest.Answer{Text: a.text, Images: a.images, IsError: a.isError}, err
	}}
}

// openAgent returns an agent that works in a sandbox; "": in its default one.
func openAgent(t *testing.T, s *server, sandbox string) *taskstest.Agent {
	t.Helper()
	return taskstest.New(t, agentOf(openAs(t, s), nil), sandbox)
}
