// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A page of an origin that the operator names can use every coat; others none.
func TestPagesOfOtherOriginsUseEveryCoat(t *testing.T) {
	const page = "https://console.example.org"
	i := newInstallation(t)
	i.cfg.Origins = []string{page}
	url, stop, err := i.start(Adopt{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	b, err := os.ReadFile(filepath.Join(i.cfg.Data, "admin-token"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, origin, body string, headers ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range append([]string{"Origin: " + origin, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"}, headers...) {
			name, value, _ := strings.Cut(h, ": ")
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	for _, path := range []string{
		"/v1/sandboxes", "/v1/sandboxes/x/files/a.txt", "/api/v1/sandboxes", "/v1/nothing", "/mcp", "/mcp/daytona", "/mcp/runs/x", "/files/x/y", "/healthz", "/connect", "/metrics", "/artifacts/x/y",
	} {
		t.Run(strings.ReplaceAll(path, "/", "_"), func(t *testing.T) {
			for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
				resp := ask("OPTIONS", path, page, "", "Access-Control-Request-Method: "+method, "Access-Control-Request-Headers: authorization,content-type")
				if resp.StatusCode != 204 || resp.Header.Get("Access-Control-Allow-Origin") != page || !strings.Contains(resp.Header.Get("Access-Control-Allow-Methods"), method) {
					t.Errorf("%s: got %s %v", method, resp.Status, resp.Header)
				}
			}
			resp := ask("OPTIONS", path, "https://evil.example", "", "Access-Control-Request-Method: POST")
			if resp.StatusCode != 403 || resp.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("another page: got %s %v", resp.Status, resp.Header)
			}
		})
	}
	token := "Authorization: Bearer " + strings.TrimSpace(string(b))
	for name, resp := range map[string]*http.Response{
		"REST": ask("GET", "/v1/sandboxes", page, "", token),
		"MCP": ask("POST", "/mcp", page, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"page","version":"1"}}}`,
			token, "Content-Type: application/json", "Accept: application/json, text/event-stream"),
	} {
		h := resp.Header
		if resp.StatusCode != 200 || h.Get("Access-Control-Allow-Origin") != page || h["Access-Control-Allow-Credentials"] != nil || !strings.Contains(h.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") {
			t.Errorf("%s: got %s %v", name, resp.Status, h)
		}
		if name == "MCP" && h.Get("Mcp-Session-Id") == "" {
			t.Errorf("there is no session: %v", h)
		}
	}
}
