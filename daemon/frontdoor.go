// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	_ "embed"
	"net/http"
	"slices"
	"strings"

	"sandpit.dev/api/guard"
	"sandpit.dev/console"
	"sandpit.dev/fault"
)

//go:embed frontdoor.html
var frontDoorHTML string

// frontDoor is the data of the page at the server's address. It names nothing that is on the
// server: everyone who reaches it may read it.
type frontDoor struct {
	URL      string
	Connect  string // the page with the settings of clients, if that is public
	Document string // likewise the OpenAPI document
}

// newFrontDoor returns the handler of the server's address: for browsers the console, or where there is none a page that says how to
// connect, and for all others what api answers there. public names what is served without a token.
func newFrontDoor(g *guard.Guard, public []string, hasConsole bool, api http.Handler) http.Handler {
	p := newPage("front door", frontDoorHTML)
	var has frontDoor
	if slices.Contains(public, publicConnect) {
		has.Connect = connectPath
	}
	if slices.Contains(public, publicOpenAPI) {
		has.Document = "/v1/openapi.json"
	}
	open := g.WrapOpen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hasConsole {
			w.Header().Set("Cache-Control", "no-store")
			http.Redirect(w, r, console.Root, http.StatusFound)
			return
		}
		data := has
		data.URL = guard.BaseURL(r)
		p.serve(w, r, data)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept")
		if !wantsPage(r) {
			api.ServeHTTP(w, r)
			return
		}
		open.ServeHTTP(w, r)
	})
}

// wantsPage reports whether a request is a browser's for something to show: browsers name
// text/html first, and programs name it not at all.
func wantsPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Authorization") != "" {
		return false
	}
	return slices.ContainsFunc(r.Header.Values("Accept"), func(v string) bool {
		first, _, _ := strings.Cut(v, ",")
		kind, _, _ := strings.Cut(first, ";")
		return strings.EqualFold(strings.TrimSpace(kind), "text/html")
	})
}

// noSignIn answers where clients of OAuth look for a way to sign in. There is none, and 404 is
// how they learn that: at a 401 they would wait for it.
func noSignIn(w http.ResponseWriter, r *http.Request) {
	guard.Error(w, r, fault.New(fault.NotFound, "this server has no sign-in: it knows its clients by tokens").
		WithRemedy("send the header Authorization: Bearer TOKEN; sandpit token create makes a token"))
}
