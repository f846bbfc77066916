// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package filelink makes and reads links to single files of sandboxes: for people
// and programs that have no token, and that a token must not be given to. A link
// names one file by sandbox and path, is for reading or for writing it, is good until a time, and is signed, not
// stored: it ends with its time, with its sandbox, or with the key.
package filelink

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Root is where linked files are: Root, the token, "/", the file's name.
const Root = "/files/"

// Grant is the right to read one file until a time, or to write it, as a token proves it.
type Grant struct {
	Write   bool   // to write it, and not to read it
	Most    int64  // with Write: the most bytes that the file may have
	Project string // of the sandbox
	Sandbox string // its id: a key may be another sandbox's tomorrow
	Path    string // absolute, inside
	Expires time.Time
}

// Who reads or writes by a link, in the events of the sandbox.
const (
	actor = "link"
	via   = "file-link"
)

// Caller returns who acts by a link, who may read, or write, in the sandbox's project: what is done is the grant's to say.
func (g Grant) Caller() access.Caller {
	scope := access.SandboxesRead
	if g.Write {
		scope = access.SandboxesWrite
	}
	return access.Caller{Project: g.Project, Actor: actor, Via: via, Scopes: []access.Scope{scope}}
}

// Bounds of how long a link is good, and of what it takes.
const (
	// DefaultMost and MaxMost are the most bytes of a file that is written by a link.
	DefaultMost = 100 << 20
	MaxMost     = 5 << 30

	DefaultLife = time.Hour
	MinLife     = time.Minute
	MaxLife     = 7 * 24 * time.Hour
)

// minKey is how many random bytes a key has at least.
const minKey = 32

// Links makes and reads tokens. It is safe for concurrent use.
type Links struct{ key []byte }

// New makes Links of a key of random bytes. The key may be another use's, too:
// what is signed here is good for nothing else.
func New(key []byte) (*Links, error) {
	if len(key) < minKey {
		return nil, fault.New(fault.Invalid, "the key of links to files has %d bytes, fewer than %d", len(key), minKey)
	}
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte("sandpit file links 1")) // a hash takes everything
	return &Links{h.Sum(nil)}, nil
}

// tokenPrefix begins every token, so that one is known where it is seen.
const tokenPrefix = "spf_"

// writePrefix begins the text of a grant to write, before the most bytes.
const writePrefix = "write "

// maxToken is longer than the token of the longest path.
const maxToken = 24 << 10

// Token makes the token of a grant.
func (l *Links) Token(g Grant) string {
	// No part but the last holds a NUL, so that no two grants read the same.
	text := strings.Join([]string{strconv.FormatInt(g.Expires.Unix(), 10), g.Project, g.Sandbox, g.Path}, "\x00")
	if g.Write { // what begins so is no time, and so no right to read
		text = writePrefix + strconv.FormatInt(g.Most, 10) + "\x00" + text
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + base64.RawURLEncoding.EncodeToString(l.mac(text))
}

// SandboxKey returns the key of a sandbox by which programs sign addresses of its files themselves, as clients of some wires
// do. Another salt makes another key. It tells nothing of any other.
func (l *Links) SandboxKey(id sandbox.ID, salt string) string {
	return base64.RawURLEncoding.EncodeToString(l.mac("key\x00" + string(id) + "\x00" + salt)) // no grant begins so
}

func (l *Links) mac(text string) []byte {
	h := hmac.New(sha256.New, l.key)
	_, _ = h.Write([]byte(text))
	return h.Sum(nil)
}

// Read checks a token and gives what it grants.
func (l *Links) Read(token string, now time.Time) (Grant, error) {
	invalid := fault.New(fault.Unauthenticated, "the link is not valid").WithRemedy("ask whoever gave it to you for a new one")
	body, sum, ok := strings.Cut(strings.TrimPrefix(token, tokenPrefix), ".")
	if !ok || len(token) > maxToken || !strings.HasPrefix(token, tokenPrefix) {
		return Grant{}, invalid
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(body)
	mac, err2 := base64.RawURLEncoding.Strict().DecodeString(sum)
	if err != nil || err2 != nil || !hmac.Equal(mac, l.mac(string(text))) {
		return Grant{}, invalid
	}
	// From here on it is what we wrote ourselves.
	var g Grant
	if most, rest, write := strings.Cut(strings.TrimPrefix(string(text), writePrefix), "\x00"); write && strings.HasPrefix(string(text), writePrefix) {
		if g.Most, err = strconv.ParseInt(most, 10, 64); err != nil || g.Most < 1 {
			return Grant{}, invalid
		}
		g.Write, text = true, []byte(rest)
	}
	part := strings.SplitN(string(text), "\x00", 4)
	if len(part) != 4 {
		return Grant{}, invalid
	}
	at, err := strconv.ParseInt(part[0], 10, 64)
	if err != nil {
		return Grant{}, invalid
	}
	g.Expires, g.Project, g.Sandbox, g.Path = time.Unix(at, 0).UTC(), part[1], part[2], part[3]
	if !now.Before(g.Expires) {
		return Grant{}, fault.New(fault.Unauthenticated, "the link expired at %s", g.Expires.Format(time.RFC3339)).
			WithRemedy("ask whoever gave it to you for a new one")
	}
	return g, nil
}

// Address is the link, as whoever sent r reaches the server.
func (l *Links) Address(r *http.Request, g Grant) string {
	scheme := "http"
	// Whoever lies about it spoils only its own answer.
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https"
	}
	return scheme + "://" + r.Host + Root + l.Token(g) + "/" + url.PathEscape(path.Base(g.Path))
}

// Parse takes an escaped path below Root apart.
func Parse(escaped string) (token, name string, err error) {
	rest, ok := strings.CutPrefix(escaped, Root)
	token, name, slash := strings.Cut(rest, "/")
	if name, err = url.PathUnescape(name); !ok || !slash || err != nil || name == "" || strings.Contains(name, "/") {
		return "", "", fault.New(fault.NotFound, "there is no linked file at %q", sandbox.Clip(escaped, 80))
	}
	return token, name, nil
}
