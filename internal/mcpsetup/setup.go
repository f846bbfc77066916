// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpsetup

import (
	"net"
	"net/netip"
	"path/filepath"
	"strings"
)

// How a client comes by its token.
const (
	TokenByVariable = "variable" // its file names TokenVar, which has to be in its environment
	TokenAsked      = "asked"    // it asks its user, and keeps it
	TokenWritten    = "written"  // it stands in its file
	TokenFound      = "found"    // what it starts finds the token of a server on the same machine
)

// Setup is all that there is to say of how a client is told of a server.
type Setup struct {
	Client
	File    string // where it looks, with ~ for the home; "": it is not one program
	Snippet string // what its file is to have
	Command string // that adds it; "": none
	Link    string // that adds it; "": none
	Token   string // one of the constants above
}

// Setups returns what each client is to be told of s. Where a token has to be written down, placeholder stands in its place; with
// written that is so for every client that does not ask for it.
func Setups(s Server, placeholder string, written bool) []Setup {
	clients := Clients()
	all := make([]Setup, 0, len(clients))
	for _, c := range clients {
		one := s
		if written {
			one.Remote = true // so that no other token is found
		}
		how := TokenByVariable
		switch {
		case c.asks && !c.starts(one):
			how = TokenAsked
		case written || !c.Refers(one):
			one.Token, how = placeholder, TokenWritten
		case !c.Names(one):
			how = TokenFound
		}
		setup := Setup{Client: c, Snippet: c.Snippet(one), Command: c.Command(one), Link: c.Link(one), Token: how}
		if files := c.Files(Env{Home: "~", Getenv: func(string) string { return "" }}); len(files) > 0 {
			setup.File = filepath.ToSlash(files[0])
		}
		all = append(all, setup)
	}
	return all
}

// AtHome reports whether a server at host is on the machine of who names it so.
func AtHome(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}
