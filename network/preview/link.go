// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/fault"
)

// Grant is the right to see one preview until a time, as a token proves it.
type Grant struct {
	Project string // of the sandbox
	Sandbox string // its id
	Port    int
	Expires time.Time // in whole seconds
	Link    string    // the link's id; empty: it came of a token of the API, or of the sandbox's own
	Key     string    // of the sandbox's own token, which has no end, and where Port is 0 is good for each; else empty
}

// KeySize is the length of a key in bytes.
const KeySize = 32

// Links makes and reads the tokens of links, and their addresses. Anyone who has a token can use
// it, until it expires, the sandbox is deleted or the key is changed. It is safe for concurrent
// use.
type Links struct {
	key    []byte
	domain string
}

// NewLinks returns Links with a key of KeySize random bytes. domain is that of previews by host
// name; if it is empty, there are none.
func NewLinks(key []byte, domain string) (*Links, error) {
	if len(key) != KeySize {
		return nil, fault.New(fault.Invalid, "the key of preview links has %d bytes, not %d", len(key), KeySize)
	}
	if err := CheckDomain("domain", domain); err != nil {
		return nil, err
	}
	return &Links{key: key, domain: domain}, nil
}

// Kinds of tokens; one is never taken for the other.
const (
	tokenPrefix = "spp_"
	ofLink      = "l"
	ofCookie    = "c"
	ofSandbox   = "s"  // the sandbox's own
	ofItsCookie = "sc" // of a browser that has shown it
)

// Token makes the token of a link.
func (l *Links) Token(g Grant) string { return l.sign(ofLink, g) }

// SandboxToken makes the token that opens every port of a sandbox, as long as the key is the sandbox's.
func (l *Links) SandboxToken(project, sandbox, key string) string {
	return l.sign(ofSandbox, Grant{Project: project, Sandbox: sandbox, Key: key})
}

// sign makes "spp_l.8000.1795000000.LINK.SANDBOX.PROJECT.MAC". None of the parts
// holds a dot, so that no two grants read the same.
func (l *Links) sign(kind string, g Grant) string {
	expires := int64(0)
	if !g.Expires.IsZero() {
		expires = g.Expires.Unix()
	}
	text := tokenPrefix + strings.Join([]string{
		kind, strconv.Itoa(g.Port), strconv.FormatInt(expires, 10), g.Link + g.Key, g.Sandbox, g.Project,
	}, ".")
	return text + "." + base64.RawURLEncoding.EncodeToString(l.mac(text))
}

func (l *Links) mac(text string) []byte {
	h := hmac.New(sha256.New, l.key)
	_, _ = h.Write([]byte("sandpit preview 1\x00" + text)) // a hash takes everything
	return h.Sum(nil)
}

// Bounds of tokens: maxToken is longer than any of a link, maxAPIToken than any of the API.
const (
	maxToken    = 512
	maxAPIToken = 8 << 10
)

// read checks a token of a kind and returns what it grants at p.
func (l *Links) read(kind, token string, p place, now time.Time) (Grant, error) {
	refuse := func(format string, args ...any) (Grant, error) {
		return Grant{}, fault.New(fault.Unauthenticated, format, args...).
			WithRemedy("ask whoever gave you the link for a new one (sandpit preview SANDBOX %d)", p.port)
	}
	text, mac := token, ""
	if i := strings.LastIndexByte(token, '.'); i >= 0 {
		text, mac = token[:i], token[i+1:]
	}
	sum, err := base64.RawURLEncoding.Strict().DecodeString(mac)
	if err != nil || len(token) > maxToken || !hmac.Equal(sum, l.mac(text)) {
		return refuse("the link is not valid")
	}
	// From here on it is what we wrote ourselves.
	part := tokenParts(text)
	if len(part) != 6 || part[0] != kind {
		return refuse("the link is not valid")
	}
	port, err := strconv.Atoi(part[1])
	expires, err2 := strconv.ParseInt(part[2], 10, 64)
	if err != nil || err2 != nil {
		return refuse("the link is not valid")
	}
	g := Grant{Port: port, Expires: time.Unix(expires, 0).UTC(), Link: part[3], Sandbox: part[4], Project: part[5]}
	own := kind == ofSandbox || kind == ofItsCookie
	if own {
		g.Link, g.Key = "", part[3]
	}
	if kind == ofSandbox {
		g.Expires = time.Time{}
	}
	switch {
	case g.Sandbox != p.sandbox || g.Port != p.port && (kind != ofSandbox || g.Port != 0):
		return refuse("the link is for another preview")
	case own && (g.Key == "" || g.Key != p.key):
		return refuse("the token of the sandbox's previews was taken back")
	case kind != ofSandbox && !now.Before(g.Expires):
		return refuse("the link expired at %s", g.Expires.Format(time.RFC3339))
	}
	return g, nil
}

// tokenParts are the parts of a token's text, which is without its signature.
func tokenParts(text string) []string {
	return strings.Split(strings.TrimPrefix(text, tokenPrefix), ".")
}

// placeOf returns the place that a token says it is for. Whether that is so, [Links.read] tells.
func placeOf(token string) (place, error) {
	part := tokenParts(token)
	if len(part) != 7 || len(token) > maxToken {
		return place{}, fault.New(fault.Unauthenticated, "the link is not valid").WithRemedy("ask whoever gave you the link for a new one")
	}
	return newPlace(part[4], part[1])
}

// Addresses returns the addresses of a preview as the client that sent r reaches them: the one to
// show, by host name where that works, and the one by path.
func (l *Links) Addresses(r *http.Request, id string, port int) (address, path string) {
	path = scheme(r) + "://" + r.Host + Root + id + "/" + strconv.Itoa(port) + "/"
	if host := l.host(r, id, port); host != "" {
		return scheme(r) + "://" + host + "/", path
	}
	return path, path
}

// host returns the preview's own host, with the port that r came to; "" if the client that sent r
// may not reach it.
func (l *Links) host(r *http.Request, id string, port int) string {
	host, at := splitHost(r.Host)
	switch {
	case l.domain == "":
		return ""
	case l.domain == loopbackDomain && (!isLoopback(host) || r.Header.Get("X-Forwarded-Host") != ""):
		return "" // it would lead to the asker's own machine
	}
	return withPort(strconv.Itoa(port)+"-"+id+"."+l.domain, at)
}

// scheme returns that of the address that the client used, as far as a proxy before us reports
// it. A client that lies about it spoils only its own answer.
func scheme(r *http.Request) string {
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		return "https"
	}
	return "http"
}
