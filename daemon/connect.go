// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	_ "embed"
	"html/template"
	"net/http"
	"net/url"

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
	mcpsetup.Setup
	Link template.URL // of a scheme of the client's; made of escaped parts
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
	s := mcpsetup.Server{Name: mcpsetup.DefaultName, Program: "sandpit", Remote: !mcpsetup.AtHome(r.Host)}
	if profile != "" && profile != sandpit.Name {
		address += "/" + profile
		p.Profile, s.Profile = profile, profile
	}
	s.URL = address
	p.URL = s.URL
	for _, name := range mcp.Profiles() {
		p.Profiles = append(p.Profiles, connectProfile{name, connectPath + "?profile=" + url.QueryEscape(name)})
	}
	for _, c := range mcpsetup.Setups(s, "TOKEN", false) {
		p.Clients = append(p.Clients, connectClient{c, template.URL(c.Link)})
	}
	return p
}
