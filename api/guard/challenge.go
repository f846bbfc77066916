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

// Resource returns the path of a protected resource that a request's path belongs to: one of roots, or
// what is directly below one; "" for none of them.
func Resource(roots []string, path string) string {
	for _, root := range roots {
		below, ok := strings.CutPrefix(path, root+"/")
		if path == root || ok && below != "" && strings.Trim(below, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" {
			return path
		}
	}
	return ""
}

// challenge returns the header WWW-Authenticate of a 401. Where clients can get a token from somewhere,
// it says how they find out.
func challenge(r *http.Request) string {
	text := `Bearer realm="sandpit"`
	p := passOf(r.Context())
	if p == nil || len(p.resources) == 0 {
		return text
	}
	if len(r.Header["Authorization"]) > 0 {
		text += `, error="invalid_token"`
	}
	return text + `, resource_metadata="` + BaseURL(r) + MetadataPath + Resource(p.resources, r.URL.Path) + `"`
}
