// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sandpit.dev/access"
)

// backend is the address that a preview's connections are kept under.
func backend(at place) string { return strconv.Itoa(at.port) + "." + at.sandbox + ".invalid" }

// rewrite makes the program's request. Hop-by-hop headers and the client's forwarding headers are
// removed before.
func rewrite(pr *httputil.ProxyRequest) {
	p := passOf(pr.In.Context())
	out := pr.Out
	path, err := url.PathUnescape(p.rest)
	if err != nil {
		path = p.rest // cannot be: net/http has unescaped it
	}
	out.URL = &url.URL{
		Scheme: "http", Host: backend(p.at), Path: path, RawPath: p.rest,
		RawQuery: withoutToken(pr.In.URL.RawQuery), ForceQuery: pr.In.URL.ForceQuery && pr.In.URL.RawQuery == "",
	}
	out.Host = pr.In.Host
	pr.SetXForwarded()
	h := out.Header
	sameOrigin(h, p.at, pr.In.Host, scheme(pr.In))
	if p.host != "" {
		out.Host = p.host
		// What compares the page's origin with the host must not find them different.
		if origins := h["Origin"]; len(origins) == 1 && ownOrigin(origins[0], pr.In.Host) {
			h.Set("Origin", "http://"+p.host)
		}
	}
	h.Set("X-Forwarded-Proto", scheme(pr.In))
	h.Del("X-Forwarded-Prefix")
	if p.at.prefix != "" {
		h.Set("X-Forwarded-Prefix", p.at.prefix)
	}
	strip(h, p.v)
}

// strip takes what is between us and the client out of a request's headers.
func strip(h http.Header, v visitor) {
	for _, name := range headerNames() {
		h.Del(name)
	}
	// Another bearer token is the program's own business, unless it looks like one
	// of ours that has ended.
	if values := h["Authorization"]; v.bearer || len(values) > 1 || ours(values) {
		h.Del("Authorization")
	}
	if cookies := withoutCookie(h["Cookie"]); len(cookies) > 0 {
		h["Cookie"] = cookies
	} else {
		h.Del("Cookie")
	}
	if referer := h.Get("Referer"); strings.Contains(referer, "?") {
		before, query, _ := strings.Cut(referer, "?")
		query, fragment, hash := strings.Cut(query, "#")
		if query = withoutToken(query); query != "" {
			before += "?" + query
		}
		if hash {
			before += "#" + fragment
		}
		h.Set("Referer", before)
	}
}

// apiTokenPrefix begins the tokens that the server makes, and sandboxTokenPrefix those for one sandbox.
const (
	apiTokenPrefix     = "spt_"
	sandboxTokenPrefix = "sps_"
)

func ours(values []string) bool {
	for _, v := range values {
		scheme, token, _ := strings.Cut(v, " ")
		token = strings.TrimLeft(token, " ")
		if strings.EqualFold(scheme, "Bearer") && (strings.HasPrefix(token, apiTokenPrefix) || strings.HasPrefix(token, sandboxTokenPrefix) || strings.HasPrefix(token, tokenPrefix)) {
			return true
		}
	}
	return false
}

// mayHaveOurCookie reports whether a Cookie header can have one of our cookies. That of a session comes by path alone: its
// host is the server's.
func mayHaveOurCookie(v string) bool {
	v = strings.ToLower(v)
	return strings.Contains(v, cookieName) || strings.Contains(v, strings.ToLower(access.SessionCookie))
}

// isOurCookie reports whether browsers take a pair for one of our cookies, or send it as one: names are followed and
// preceded by blanks, prefixes of names are compared without regard to case, and a pair without a name is sent back as its value alone.
func isOurCookie(pair string) bool {
	pair = strings.TrimLeft(pair, " \t=")
	name, _, _ := strings.Cut(pair, "=")
	name = strings.TrimSpace(name)
	return strings.EqualFold(name, cookieName) || strings.EqualFold(name, access.SessionCookie)
}

// withoutCookie returns the values of Cookie headers without our cookies, and each
// other one byte for byte.
func withoutCookie(values []string) []string {
	var out []string
	for _, v := range values {
		if !mayHaveOurCookie(v) {
			out = append(out, v)
			continue
		}
		var kept []string
		for part := range strings.SplitSeq(v, ";") {
			if part = strings.TrimSpace(part); part != "" && !isOurCookie(part) {
				kept = append(kept, part)
			}
		}
		if len(kept) > 0 {
			out = append(out, strings.Join(kept, "; "))
		}
	}
	return out
}

// queryToken is the token in a query, or "".
func queryToken(raw string) string {
	for part := range strings.SplitSeq(raw, "&") {
		if name, value, _ := strings.Cut(part, "="); isTokenName(name) {
			if token, err := url.QueryUnescape(value); err == nil && token != "" {
				return token
			}
		}
	}
	return ""
}

// withoutToken returns a query without tokens, and all else of it byte for byte.
func withoutToken(raw string) string {
	if !strings.Contains(raw, "%") && !slices.ContainsFunc(queryNames(), func(name string) bool { return strings.Contains(raw, name) }) {
		return raw
	}
	var kept []string
	for part := range strings.SplitSeq(raw, "&") {
		if name, _, _ := strings.Cut(part, "="); !isTokenName(name) {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "&")
}

// withToken returns a query with a link's token, if there is one, in place of what tokens it has.
func withToken(raw, token string) string {
	if token == "" {
		return raw
	}
	if raw = withoutToken(raw); raw != "" {
		raw += "&"
	}
	return raw + queryName + "=" + url.QueryEscape(token)
}

func isTokenName(escaped string) bool {
	name, err := url.QueryUnescape(escaped)
	return err == nil && slices.Contains(queryNames(), name)
}
