// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/fault"
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

// Challenge returns the header WWW-Authenticate of the answer to a request that is refused with err: of a 401, and of a
// 403 to a token that lacks a scope (RFC 6750, 3.1); else "". Where clients can get a token from somewhere, it says how
// they find out.
func Challenge(r *http.Request, err error) string {
	p := passOf(r.Context())
	if p == nil {
		p = new(pass)
	}
	text := `Bearer realm="sandpit"`
	switch lacked := lackedScope(err); {
	case fault.Is(err, fault.Unauthenticated):
		if len(p.resources) > 0 && (p.presented || len(r.Header["Authorization"]) > 0) {
			text += `, error="invalid_token"`
		}
	case lacked != "":
		text += `, error="insufficient_scope"`
		if ask := toAskFor(p.caller, lacked); ask != "" {
			text += `, scope="` + ask + `"`
		}
	default:
		return ""
	}
	if len(p.resources) > 0 {
		text += `, resource_metadata="` + BaseURL(r) + MetadataPath + Resource(p.resources, r.URL.Path) + `"`
	}
	return text
}

// lackedScope returns the scope for want of which err refuses; "" if it refuses for something else.
func lackedScope(err error) access.Scope {
	for {
		e, ok := errors.AsType[*fault.Error](err)
		if !ok || e.Code != fault.Denied {
			return ""
		}
		if e.Scope != "" {
			return access.Scope(e.Scope)
		}
		err = e.Err
	}
}

// toAskFor returns the scopes that a caller's next token needs, as its issuer calls them: those that it has, which a
// token for the lacked one alone would lose, and that one. It is "" where no token can have that.
func toAskFor(c access.Caller, lacked access.Scope) string {
	if lacked == access.ServerAdmin {
		return "" // the server's own admin tokens alone have it: nobody can be asked for it
	}
	var words []string
	for _, s := range append(slices.Clone(c.Scopes), lacked) {
		word := string(s)
		if c.Words != nil {
			word = c.Words[s]
		}
		if !isScopeToken(word) {
			if s == lacked {
				return ""
			}
			continue
		}
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// isScopeToken reports whether a word is one that a scope can have (RFC 6749, 3.3): no space, no quote, no backslash.
func isScopeToken(word string) bool {
	return word != "" && !strings.ContainsFunc(word, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' })
}
