// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"mime"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

// viaSession is how events name what people who are signed in do.
const viaSession = "console"

// findCookie returns the session's cookie of a request, where the door takes one.
func (d *Door) findCookie(r *http.Request) (string, Credential, error) {
	for _, c := range d.Credentials {
		if c.place != inCookie || !strings.HasPrefix(r.URL.Path, c.below) {
			continue
		}
		switch all := r.CookiesNamed(c.name); {
		case len(all) > 1:
			return "", c, fault.New(fault.Unauthenticated, "the request has %d cookies %s", len(all), c.name).WithRemedy("clear this site's cookies, and sign in again")
		case len(all) == 1:
			return all[0].Value, c, nil
		}
	}
	return "", Credential{}, nil
}

// NewCookie returns the cookie of a session with a secret. Browsers keep it as long as the session may last.
func NewCookie(secret string, life time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: access.SessionCookie, Value: secret, Path: "/", MaxAge: int(life / time.Second), Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// EndedCookie has a browser forget the cookie of a session.
func EndedCookie() *http.Cookie {
	c := NewCookie("", 0)
	c.MaxAge = -1
	return c
}

// KeepsCookie returns an error where a browser would not keep the cookie: it does over https, and for this machine.
func KeepsCookie(r *http.Request) error {
	host := canonicalHost(hostName(r.Host))
	addr, err := netip.ParseAddr(host)
	if strings.HasPrefix(BaseURL(r), "https://") || host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.IsLoopback() {
		return nil
	}
	return fault.New(fault.Denied, "browsers keep the session's cookie only over https, or at localhost").
		WithRemedy("serve by TLS (sandpit tls init DOMAIN), or forward a port of this machine: ssh -L 8080:localhost:8080 HOST")
}

// ownScript refuses what comes with a session's cookie, unless a script of the server's own page asked for it: browsers send
// the cookie whatever page makes the request, and pages below the same domain, such as previews, are of the
// same site. What they say of the request's origin no page can change. A page, a frame, a picture, a script and a
// worker that is loaded from there has no business with it either: what is read may be a stranger's.
func ownScript(r *http.Request) error {
	refused := fault.New(fault.Denied, "only a script of the server's own page may use the session").
		WithRemedy("send a token by the header Authorization: Bearer TOKEN")
	h := r.Header
	origins, site := h["Origin"], h.Get("Sec-Fetch-Site")
	switch {
	case len(origins) > 1, len(origins) == 1 && origins[0] != BaseURL(r):
		return refused
	case site != "" && site != "same-origin":
		return refused
	case len(origins) == 0 && site == "":
		return refused
	}
	switch h.Get("Sec-Fetch-Dest") {
	case "", "empty", "websocket":
	default:
		return refused
	}
	if h.Get("Upgrade") != "" && len(origins) == 0 {
		return refused
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	// A form can send these three kinds, to whatever site.
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	hasBody := r.ContentLength != 0
	switch {
	case r.Method != http.MethodPost && !hasBody && h.Get("Content-Type") == "":
	case err != nil, kind == "application/x-www-form-urlencoded", kind == "multipart/form-data", kind == "text/plain":
		return refused.WithRemedy("send the header Content-Type: application/json, or that of the file")
	}
	return nil
}

// AdmitCaller records who the caller of an operation that needs no token turned out to be, for the log and the audit log.
func AdmitCaller(r *http.Request, c access.Caller) {
	p := passOf(r.Context())
	if p == nil {
		return
	}
	Proven(r.Context())
	c.Via, c.RequestID, c.Address = cmp.Or(c.Via, viaSession), p.id, address(r)
	p.caller, p.known, p.presented = c, true, true
	p.operation.Caller = c
}

// Tried records that an operation that needs no token was shown one, or the like, that is not valid, and returns the error
// to answer with, see [Guard.Guessed].
func (g *Guard) Tried(w http.ResponseWriter, r *http.Request, err error) error {
	if p := passOf(r.Context()); p != nil {
		p.presented = true
		p.operation.Caller = access.Caller{Via: viaSession, RequestID: p.id, Address: address(r)}
	}
	return g.Guessed(w, r, err)
}

// BearerToken returns the token of a request's Authorization header, or "".
func BearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.Trim(token, " ")
}

// Address returns the peer of a request's connection, without the port; "" for a unix socket.
func Address(r *http.Request) string { return address(r) }
