// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/issuer"
)

// signer is an authorization server that publishes one key.
type signer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{key: key}
	public, err := key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": s.URL, "jwks_uri": s.URL + "/keys"})
		case "/keys":
			_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{
				"kty": "EC", "crv": "P-256", "kid": "k", "use": "sig", "alg": "ES256",
				"x": base64.RawURLEncoding.EncodeToString(public[1:33]), "y": base64.RawURLEncoding.EncodeToString(public[33:]),
			}}})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// token signs one by the standard library alone.
func (s *signer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	text := part(map[string]any{"alg": "ES256", "typ": "at+jwt", "kid": "k"}) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	r, v, err := ecdsa.Sign(rand.Reader, s.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, 64)
	r.FillBytes(raw[:32])
	v.FillBytes(raw[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(raw)
}

func TestTokensOfAnIssuerAreTaken(t *testing.T) {
	s := newSigner(t)
	i := newInstallation(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	i.cfg.Issuers = []issuer.Config{{
		URL: s.URL, Audience: "https://box.example.org", ProjectClaim: "project", CAFile: ca,
		Scopes: map[string][]access.Scope{"boss": {access.Admin}}, DefaultScopes: []access.Scope{access.SandboxesRead},
	}}
	i.cfg.MCP.Path = "/tools"
	url, stop, err := i.start(Adopt{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	ask := func(method, path, token, body string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(text)
	}
	claims := func(scope string) map[string]any {
		return map[string]any{
			"iss": s.URL, "sub": "alice@example.org", "aud": "https://box.example.org", "exp": time.Now().Add(time.Hour).Unix(), "project": "team-a", "scope": scope,
		}
	}
	boss := s.token(t, claims("openid boss"))
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

	if resp, text := ask("GET", "/v1/whoami", boss, ""); resp.StatusCode != 200 || !strings.Contains(text, `"team-a"`) || !strings.Contains(text, `"jwt:alice@example.org"`) {
		t.Errorf("whoami: %s %s", resp.Status, text)
	}
	if resp, text := ask("POST", "/mcp", boss, initialize); resp.StatusCode != 200 {
		t.Errorf("MCP: %s %s", resp.Status, text)
	}
	if resp, text := ask("POST", "/v1/tokens", boss, `{"name":"made-by-a-token-of-an-issuer"}`); resp.StatusCode != 201 || !strings.Contains(text, `"team-a"`) {
		t.Errorf("a token of its project: %s %s", resp.Status, text)
	}
	for what, body := range map[string]string{"/v1/backups": "", "/v1/images/prune": "{}", "/v1/tokens": `{"name":"x","project":"team-b"}`} {
		if resp, text := ask("POST", what, boss, body); resp.StatusCode != 403 {
			t.Errorf("%s: %s %s", what, resp.Status, text)
		}
	}
	if resp, text := ask("GET", "/metrics", s.token(t, claims("server:admin")), ""); resp.StatusCode != 403 {
		t.Errorf("a token that says server:admin: %s %s", resp.Status, text)
	}

	for path, at := range map[string]string{"/mcp": "/mcp", "/mcp/daytona": "/mcp/daytona", "/tools": "/tools", "/v1/sandboxes": ""} {
		for _, token := range []string{"", boss + "x"} {
			resp, _ := ask("POST", path, token, "{}")
			challenge := resp.Header.Get("WWW-Authenticate")
			if resp.StatusCode != 401 || !strings.Contains(challenge, `resource_metadata="`+url+"/.well-known/oauth-protected-resource"+at+`"`) || (token != "") != strings.Contains(challenge, "invalid_token") {
				t.Errorf("%s: %s, %s", path, resp.Status, challenge)
			}
		}
		resp, text := ask("GET", "/.well-known/oauth-protected-resource"+at, "", "")
		var doc struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
		}
		if err := json.Unmarshal([]byte(text), &doc); err != nil || resp.StatusCode != 200 || doc.Resource != url+at || !slices.Equal(doc.Servers, []string{s.URL}) {
			t.Errorf("%s: %s %s", at, resp.Status, text)
		}
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource/etc/passwd", "/.well-known/oauth-protected-resource/mcp/a/b", "/.well-known/oauth-authorization-server", "/register"} {
		if resp, _ := ask("GET", path, "", ""); resp.StatusCode != 404 {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}

func TestIssuersOfTheConfiguration(t *testing.T) {
	read := func(text string) ([]issuer.Config, error) {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := DefaultConfig()
		if err := cfg.ReadFile(path); err != nil {
			return nil, err
		}
		return cfg.Issuers, cfg.Check()
	}
	got, err := read(`
issuers:
  - url: https://login.example.org/realms/team
    audience: https://box.example.org/mcp
    project_claim: project
    scopes: {sandbox-user: [sandboxes:read, sandboxes:write]}
    default_scopes: [sandboxes:read]
`)
	if err != nil || len(got) != 1 || len(got[0].Scopes["sandbox-user"]) != 2 || got[0].DefaultScopes[0] != access.SandboxesRead {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{
		"issuers: [{url: 'http://login.example.org', audience: a, project: p}]",
		"issuers: [{url: 'https://login.example.org', audience: a, project: p, scopes: {x: ['server:admin']}}]",
		"issuers: [{url: 'https://login.example.org', audience: a, projekt: p}]",
	} {
		if _, err := read(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
