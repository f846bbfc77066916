// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	_ "embed"
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

// connectPage is the data of the page.
type connectPage struct {
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
	p := newPage("connect", connectHTML)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		profile := r.URL.Query().Get("profile")
		if err := mcp.CheckProfile("profile", profile); err != nil {
			guard.Error(w, r, err)
			return
		}
		p.serve(w, r, connectFor(r, profile))
	})
}

// connectFor returns the page for a request.
func connectFor(r *http.Request, profile string) connectPage {
	address := guard.BaseURL(r) + "/mcp"
	p := connectPage{TokenVar: mcpsetup.TokenVar, Profile: sandpit.Name}
	s := mcpsetup.Server{Name: mcpsetup.DefaultName, Program: "sandpit", Remote: !atHome(r.Host)}
	if profile != "" && profile != sandpit.Name {
		address += "/" + profile
		p.Profile, s.Profile = profile, profile
	}
	s.URL = address
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
