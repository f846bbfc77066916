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
	"sandpit.dev/api/mcp/profile/orkestr"
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

// Ours reports whether a text has the form of one of the server's own tokens, valid or not.
func (c credentials) Ours(text string) bool { return c.own.Ours(text) }

// another reports whether a token that is not the server's own is for the issuers to check.
func (c credentials) another(token string, err error) bool {
	return fault.Is(err, fault.Unauthenticated) && len(c.issuers.URLs()) > 0 && issuer.Looks(token)
}

// resources returns the paths of this server that clients of OAuth get tokens for, each a protected
// resource of its own beside the whole (RFC 9728); nil where there is no issuer.
func (p surfaceParts) resources() []string {
	if len(p.issuers.URLs()) == 0 {
		return nil
	}
	all := []string{"/mcp", orkestr.Alias}
	if p.mcp.Path != "" {
		all = append(all, p.mcp.Path)
	}
	return all
}

// newMetadata returns the handler of [guard.MetadataPath] and below: where a client of OAuth gets a
// token for this server, or for the path of it that the rest names.
func newMetadata(issuers *issuer.Set, resources []string) http.Handler {
	type metadata struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported"`
		Methods  []string `json:"bearer_methods_supported"`
		Name     string   `json:"resource_name"`
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.EscapedPath(), guard.MetadataPath)
		if path != guard.Resource(resources, path) {
			noSignIn(w, r)
			return
		}
		doc := metadata{Resource: guard.BaseURL(r) + path, Servers: issuers.URLs(), Scopes: issuers.Scopes(), Methods: []string{"header"}, Name: "sandpit"}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "max-age=300")
		_ = json.NewEncoder(w).Encode(doc) // the client went away: nothing to report
	})
}
