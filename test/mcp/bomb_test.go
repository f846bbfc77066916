// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestASandboxFullOfProcessesIsMendedByTheDefaultTools shows the way out of a fork bomb: what the
// answer names brings the sandbox back, with its files.
func TestASandboxFullOfProcessesIsMendedByTheDefaultTools(t *testing.T) {
	s := serve(t)
	c := openGo(t, &sdk.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer(s.token)}}, "")
	ask := func(tool string, args map[string]any) answer {
		t.Helper()
		a, err := c.call(t.Context(), tool, args)
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		return a
	}
	ask("write_file", map[string]any{"path": "kept.txt", "content": "kept"})
	ask("run_command", map[string]any{"command": "b() { b | b & b | b & }; b 2>/dev/null & sleep 1000", "wait_seconds": 1})

	full := answer{}
	for range 100 { // between two of its deaths a place may be free
		if full = ask("run_command", map[string]any{"command": "echo in"}); full.isError {
			break
		}
	}
	next := `stop_process with {"sandbox": "default-admin-token", "all": true}`
	if !full.isError || !strings.Contains(full.text, "(exhausted)") || !strings.Contains(full.text, next) || strings.Contains(full.text, "delete_sandbox") {
		t.Errorf("a full sandbox is told so:\n%s", full.text)
	}
	if a := ask("stop_process", map[string]any{"sandbox": "default-admin-token", "all": true}); a.isError {
		t.Fatalf("the way out is none:\n%s", a.text)
	}
	mended := func() {
		t.Helper()
		if a := ask("run_command", map[string]any{"command": "cat kept.txt"}); a.isError || !strings.HasPrefix(a.text, "exit 0 ") || !strings.Contains(a.text, "kept") {
			t.Errorf("after it:\n%s", a.text)
		}
	}
	mended()

	ask("run_command", map[string]any{"command": "b() { b | b & b | b & }; b 2>/dev/null & sleep 1000", "wait_seconds": 1})
	if a := ask("restart_sandbox", map[string]any{"sandbox": "default-admin-token"}); a.isError {
		t.Fatalf("the way out from outside is none:\n%s", a.text)
	}
	mended()
}
