// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"
	"net/url"
	"strings"
)

// MetadataPath is where clients of OAuth find where they get a token (RFC 9728).
const MetadataPath = "/.well-known/oauth-protected-resource"

// BaseURL returns the address by which a client reached the server, without a path. The word of a
// proxy, or of whoever claims to be one, is enough for what the one who sends it is shown.
func BaseURL(r *http.Request) string {
	u := url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		u.Scheme = "https"
	}
	return u.String()
}

// challenge returns the header WWW-Authenticate of a 401. Where clients can get a token from somewhere,
// it says how they find out.
func challenge(r *http.Request) string {
	text := `Bearer realm="sandpit"`
	p := passOf(r.Context())
	if p == nil || !p.metadata {
		return text
	}
	path := ""
	if r.URL.Path == "/mcp" || strings.HasPrefix(r.URL.Path, "/mcp/") {
		path = "/mcp"
		if profile := strings.TrimPrefix(r.URL.EscapedPath(), "/mcp/"); profile != r.URL.EscapedPath() && profile != "" && !strings.ContainsAny(profile, `/"\`) {
			path += "/" + profile
		}
	}
	if len(r.Header["Authorization"]) > 0 {
		text += `, error="invalid_token"`
	}
	return text + `, resource_metadata="` + BaseURL(r) + MetadataPath + path + `"`
}
