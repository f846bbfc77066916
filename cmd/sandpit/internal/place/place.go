// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package place finds the server that a command speaks to, and as whom: by a flag, the environment, the list of
// servers that were signed in to, or on this machine.
package place

import (
	"cmp"
	"errors"
	"sync/atomic"

	"sandpit.dev/fault"
	"sandpit.dev/internal/servers"
)

// Server is where a server is, and as whom to speak to it.
type Server struct {
	URL, Token string
	By         Naming // who named it
	Kept       string // its name among the kept servers; else ""
	Data       string // of a server on this machine; else ""
	TokenFile  string // where the token was read; else ""
}

// Naming is what named a server.
type Naming int

const (
	ByNobody Naming = iota // it is this machine's own
	ByFlag
	ByVariable
	ByList // it is the current one of the kept servers
)

// Until says how commands use this machine's server again.
func (p Server) Until() string {
	if p.By == ByVariable {
		return "SANDPIT_URL is unset"
	}
	return "you say: sandpit server use " + servers.Local
}

// Finder finds the server that a person means.
type Finder struct {
	Server string // that --server names; empty: none
	Getenv func(string) string
	last   atomic.Pointer[string] // the name of the kept server that was found last
}

// SpokenTo returns the name of the kept server that was found last, or "" where the server is no kept one.
func (f *Finder) SpokenTo() string {
	if name := f.last.Load(); name != nil {
		return *name
	}
	return ""
}

// Locate finds the server to speak to.
func (f *Finder) Locate() (Server, error) {
	p, err := f.Chosen()
	if err != nil {
		return Server{}, err
	}
	if p, err = f.Located(p); err != nil {
		return Server{}, f.shadowed(err)
	}
	f.last.Store(&p.Kept)
	return p, nil
}

// shadowed adds to the failure of finding this machine's server that a variable hides the kept
// server in use, if that is so.
func (f *Finder) shadowed(err error) error {
	if f.Server != "" || f.Getenv("SANDPIT_URL") != "" || f.Getenv("SANDPIT_TOKEN") == "" {
		return err
	}
	l, lerr := f.Kept()
	e, ok := errors.AsType[*fault.Error](err)
	if lerr != nil || l.Current == "" || !ok {
		return err
	}
	return e.WithRemedy("SANDPIT_TOKEN is set, which without SANDPIT_URL is for this machine's own server: unset it to use the server %s, or give --server %[1]s", l.Current)
}

// Chosen returns what is asked for: by the flag, else by the environment, else by the list of kept
// servers. Without a url it is this machine's own server. A token goes to no other server than it
// was given for.
func (f *Finder) Chosen() (Server, error) {
	url, token := f.Getenv("SANDPIT_URL"), f.Getenv("SANDPIT_TOKEN")
	if f.Server == servers.Local {
		if url != "" { // whose token it is
			return Server{}, nil
		}
		return Server{Token: cmp.Or(token, f.Getenv("SANDPIT_ADMIN_TOKEN"))}, nil
	}
	if f.Server != "" {
		return f.flagged(url, token)
	}
	token = cmp.Or(token, f.Getenv("SANDPIT_ADMIN_TOKEN"))
	if url != "" {
		p := Server{URL: url, Token: token, By: ByVariable}
		if token == "" {
			l, err := f.Kept()
			if err != nil {
				return Server{}, err
			}
			if s, ok := l.At(Tidy(url)); ok {
				p.Kept, p.Token = s.Name, s.Token
			}
		}
		return p, nil
	}
	if f.Getenv("SANDPIT_TOKEN") != "" {
		return Server{Token: token}, nil
	}
	l, err := f.Kept()
	if err != nil {
		return Server{}, err
	}
	if s, ok := l.Find(l.Current); ok {
		return ofKept(s, ByList)
	}
	return Server{Token: token}, nil
}

// flagged returns the server that --server names; url and token are those of the environment.
func (f *Finder) flagged(url, token string) (Server, error) {
	l, err := f.Kept()
	if err != nil {
		return Server{}, err
	}
	if !IsURL(f.Server) {
		s, ok := l.Find(f.Server)
		if !ok {
			return Server{}, NoServer(l, f.Server)
		}
		return ofKept(s, ByFlag)
	}
	if s, ok := l.At(Tidy(f.Server)); ok && s.Token != "" {
		return ofKept(s, ByFlag)
	}
	if url != "" && Tidy(url) != Tidy(f.Server) {
		token = ""
	}
	return Server{URL: Tidy(f.Server), Token: token, By: ByFlag}, nil
}

// ofKept returns a server that was signed in to.
func ofKept(s servers.Server, by Naming) (Server, error) {
	if s.Token == "" {
		return Server{}, fault.New(fault.Unauthenticated, "there is no token for the server %s (%s): it was signed out of", s.Name, s.URL).
			WithRemedy("sign in again with: sandpit login %s", s.Name)
	}
	return Server{URL: s.URL, Token: s.Token, By: by, Kept: s.Name}, nil
}

// noToken is the failure of having none for a server elsewhere.
func noToken(url string) error {
	return fault.New(fault.Unauthenticated, "there is no token for the server at %s", url).
		WithRemedy("sign in with: sandpit login %s (or set SANDPIT_TOKEN); sandpit token create, on the server, makes a token", url)
}
