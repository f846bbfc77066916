// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
	"sandpit.dev/access/issuer"
	"sandpit.dev/api/guard"
	"sandpit.dev/fault"
)

// credentials checks every kind of token that callers send: the server's own, and those of external
// issuers.
type credentials struct {
	own     *bearer.Authority
	issuers *issuer.Set
}

// Check returns the caller of a token.
func (c credentials) Check(ctx context.Context, token string) (access.Caller, error) {
	caller, err := c.own.Check(ctx, token)
	if c.another(token, err) {
		return c.issuers.Check(ctx, token)
	}
	return caller, err
}

// Admit is Check with a context that ends when the token is valid no more.
func (c credentials) Admit(ctx context.Context, token string) (access.Caller, context.Context, func(), error) {
	caller, valid, release, err := c.own.Admit(ctx, token)
	if c.another(token, err) {
		return c.issuers.Admit(ctx, token)
	}
	return caller, valid, release, err
}

// another reports whether a token that is not the server's own is for the issuers to check.
func (c credentials) another(token string, err error) bool {
	return fault.Is(err, fault.Unauthenticated) && len(c.issuers.URLs()) > 0 && issuer.Looks(token)
}

// resources are the paths of this server that clients get tokens for, each a protected resource of
// its own (RFC 9728).
var resources = []string{"/mcp", "/v1", "/api/v1"}

// newMetadata returns the handler of [guard.MetadataPath] and below: where a client of OAuth gets a
// token for this server, or for the path of it that the rest names.
func newMetadata(issuers []string) http.Handler {
	type metadata struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported"`
		Methods  []string `json:"bearer_methods_supported"`
		Name     string   `json:"resource_name"`
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.EscapedPath(), guard.MetadataPath)
		if !isResource(path) {
			noSignIn(w, r)
			return
		}
		doc := metadata{Resource: guard.BaseURL(r) + path, Servers: issuers, Methods: []string{"header"}, Name: "sandpit"}
		for _, s := range access.Scopes() {
			doc.Scopes = append(doc.Scopes, string(s))
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "max-age=300")
		_ = json.NewEncoder(w).Encode(doc) // the client went away: nothing to report
	})
}

func isResource(path string) bool {
	if path == "" {
		return true
	}
	for _, root := range resources {
		if path == root || root == "/mcp" && strings.HasPrefix(path, root+"/") && strings.Count(path, "/") == 2 {
			return true
		}
	}
	return false
}
