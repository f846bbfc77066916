// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"
	"net/url"
	"strings"

	"sandpit.dev/fault"
)

// What pages of the origins that may call are told (the Fetch standard calls it CORS). A page has
// its token from its user and sends it as a header: cookies are never asked for, so credentials are
// not allowed.
const (
	pageMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	pageHeaders = "Accept, Authorization, Content-Type, Idempotency-Key, If-Match, If-Modified-Since, If-None-Match, If-Range, Last-Event-ID, " +
		"Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id, Range, X-Request-Id"
	// pageExposed are the headers of answers that a page may read, beside the few that all pages may.
	pageExposed = "Accept-Ranges, Allow, Content-Disposition, Content-Range, Etag, Idempotent-Replayed, Location, Mcp-Session-Id, Retry-After, " +
		"Sandpit-File-Type, Sandpit-Image-Digest, Sandpit-Left-Out, Sandpit-Process-Id, Sandpit-Sandbox-Id, Sandpit-Truncated, WWW-Authenticate, X-Request-Id"
	pageMaxAge = "600" // seconds for which a browser need not ask again
)

// canonicalOrigin is an origin as browsers write it: in lower case, without the port that goes
// without saying.
func canonicalOrigin(origin string) (string, error) {
	u, err := url.Parse(strings.ToLower(origin))
	if err != nil || u.Scheme == "" || u.Hostname() == "" || strings.Contains(u.Hostname(), "*") || u.Path != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fault.InvalidField("origins", "%q is not a valid origin, which has a scheme and a host and no path (https://console.example.org)", origin)
	}
	if port := u.Port(); port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
		u.Host = strings.TrimSuffix(u.Host, ":"+port)
	}
	return u.Scheme + "://" + u.Host, nil
}

// tellPage sets the headers by which a browser lets a page of another origin read the answer, if the
// page may.
func (g *Guard) tellPage(h http.Header, r *http.Request) {
	if len(g.origins) == 0 {
		return
	}
	h.Add("Vary", "Origin") // also of an answer to somebody else, which a cache might keep
	if origin := r.Header.Get("Origin"); g.origins[origin] {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", pageExposed)
	}
}

// preflight reports whether a browser asks by the request, for a page that may call, what the page
// may send. Such a request never has a token.
func (g *Guard) preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" && g.origins[r.Header.Get("Origin")]
}

// allowPage answers a preflight, whatever is served at its path: that is for the request itself to
// hear.
func allowPage(w http.ResponseWriter, r *http.Request, d *Door) {
	h := w.Header()
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", pageMethods)
	allowed := pageHeaders
	for _, c := range d.Credentials {
		if c.place == inHeader {
			allowed += ", " + c.name
		}
	}
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		// A family of headers cannot be allowed by a pattern where a token is sent.
		if name = strings.TrimSpace(name); len(name) <= 100 && ownHeader(name) {
			allowed += ", " + name
		}
	}
	h.Set("Access-Control-Allow-Headers", allowed)
	h.Set("Access-Control-Max-Age", pageMaxAge)
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true") // the operator has named the page
	}
	w.WriteHeader(http.StatusNoContent)
}

// ownHeader reports whether a name is one of the headers X-Sandpit-*.
func ownHeader(name string) bool {
	const prefix = "x-sandpit-"
	if len(name) <= len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
		return false
	}
	return strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
