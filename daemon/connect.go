// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/mcp"
	"sandpit.dev/api/mcp/profile/sandpit"
	"sandpit.dev/internal/mcpsetup"
)

// connectPath is the page that shows how to add this server to clients. It is public: it has the
// address that it was asked at, and no token.
const connectPath = "/connect"

//go:embed connect.html
var connectHTML string

const connectStyle = "body{font:16px/1.5 system-ui,sans-serif;max-width:48em;margin:3em auto;padding:0 1em;color:#222;background:#fff}" +
	"h1{font-size:1.4em}h2{font-size:1.1em;margin:2em 0 .4em}pre{overflow-x:auto;padding:.8em;background:#f3f3f3;user-select:all}" +
	"code,pre{font:14px/1.45 ui-monospace,monospace}p{margin:.5em 0}p.note{color:#666}a{color:#0645ad}" +
	"@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#242424}p.note{color:#999}a{color:#8ab4f8}}"

// connectPage is the data of the page.
type connectPage struct {
	Style         template.CSS
	URL, TokenVar string
	Profile       string
	Profiles      []connectProfile
	Clients       []connectClient
}

type connectProfile struct{ Name, Path string }

type connectClient struct {
	mcpsetup.Client
	Link                   template.URL // of a scheme of the client's; made of escaped parts
	Command, File, Snippet string
}

// newConnect returns the handler of the page.
func newConnect() http.Handler {
	page := template.Must(template.New("connect").Parse(connectHTML)) // it is ours, and a test reads it
	sum := sha256.Sum256([]byte(connectStyle))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		profile := r.URL.Query().Get("profile")
		if err := mcp.CheckProfile("profile", profile); err != nil {
			guard.Error(w, r, err)
			return
		}
		var b bytes.Buffer
		if err := page.Execute(&b, connectFor(r, profile)); err != nil {
			guard.Error(w, r, err)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		_, _ = w.Write(b.Bytes()) // the client went away: nothing to report
	})
}

// connectFor returns the page for a request.
func connectFor(r *http.Request, profile string) connectPage {
	address := url.URL{Scheme: "http", Host: r.Host, Path: "/mcp"}
	// A proxy's word is enough for what the one who sends it is shown.
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		address.Scheme = "https"
	}
	p := connectPage{Style: connectStyle, TokenVar: mcpsetup.TokenVar, Profile: sandpit.Name}
	s := mcpsetup.Server{Name: mcpsetup.DefaultName, Program: "sandpit", Remote: !atHome(r.Host)}
	if profile != "" && profile != sandpit.Name {
		address.Path += "/" + profile
		p.Profile, s.Profile = profile, profile
	}
	s.URL = address.String()
	p.URL = s.URL
	for _, name := range mcp.Profiles() {
		p.Profiles = append(p.Profiles, connectProfile{name, connectPath + "?profile=" + url.QueryEscape(name)})
	}
	for _, c := range mcpsetup.Clients() {
		one := s
		if !c.Refers(one) {
			one.Token = "TOKEN"
		}
		var file string
		if files := c.Files(mcpsetup.Env{Home: "~", Getenv: func(string) string { return "" }}); len(files) > 0 {
			file = filepath.ToSlash(files[0])
		}
		p.Clients = append(p.Clients, connectClient{
			Client: c, Link: template.URL(c.Link(one)), Command: c.Command(one), File: file, Snippet: c.Snippet(one),
		})
	}
	return p
}

// atHome reports whether a server at host is on the client's machine.
func atHome(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}
