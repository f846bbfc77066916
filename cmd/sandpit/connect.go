// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"sandpit.dev/client"
	"sandpit.dev/fault"
	"sandpit.dev/internal/servers"
)

// place is where a server is, and as whom to speak to it.
type place struct {
	url, token string
	by         naming // who named it
	kept       string // its name among the kept servers; else ""
	data       string // of a server on this machine; else ""
	tokenFile  string // where the token was read; else ""
}

// naming is what named a server.
type naming int

const (
	byNobody naming = iota // it is this machine's own
	byFlag
	byVariable
	byList // it is the current one of the kept servers
)

// locate finds the server to speak to.
func (a *app) locate() (place, error) {
	p, err := a.chosen()
	if err != nil {
		return place{}, err
	}
	if p, err = a.located(p); err != nil {
		return place{}, a.shadowed(err)
	}
	a.kept.Store(&p.kept)
	return p, nil
}

// shadowed adds to the failure of finding this machine's server that a variable hides the kept
// server in use, if that is so.
func (a *app) shadowed(err error) error {
	if a.server != "" || a.getenv("SANDPIT_URL") != "" || a.getenv("SANDPIT_TOKEN") == "" {
		return err
	}
	l, lerr := a.keptServers()
	e, ok := errors.AsType[*fault.Error](err)
	if lerr != nil || l.Current == "" || !ok {
		return err
	}
	return e.WithRemedy("SANDPIT_TOKEN is set, which without SANDPIT_URL is for this machine's own server: unset it to use the server %s, or give --server %[1]s", l.Current)
}

// chosen returns what is asked for: by the flag, else by the environment, else by the list of kept
// servers. Without a url it is this machine's own server. A token goes to no other server than it
// was given for.
func (a *app) chosen() (place, error) {
	url, token := a.getenv("SANDPIT_URL"), a.getenv("SANDPIT_TOKEN")
	if a.server == servers.Local {
		if url != "" { // whose token it is
			return place{}, nil
		}
		return place{token: cmp.Or(token, a.getenv("SANDPIT_ADMIN_TOKEN"))}, nil
	}
	if a.server != "" {
		return a.flagged(url, token)
	}
	token = cmp.Or(token, a.getenv("SANDPIT_ADMIN_TOKEN"))
	if url != "" {
		p := place{url: url, token: token, by: byVariable}
		if token == "" {
			l, err := a.keptServers()
			if err != nil {
				return place{}, err
			}
			if s, ok := l.At(tidy(url)); ok {
				p.kept, p.token = s.Name, s.Token
			}
		}
		return p, nil
	}
	if a.getenv("SANDPIT_TOKEN") != "" {
		return place{token: token}, nil
	}
	l, err := a.keptServers()
	if err != nil {
		return place{}, err
	}
	if s, ok := l.Find(l.Current); ok {
		return keptPlace(s, byList)
	}
	return place{token: token}, nil
}

// flagged returns the server that --server names; url and token are those of the environment.
func (a *app) flagged(url, token string) (place, error) {
	l, err := a.keptServers()
	if err != nil {
		return place{}, err
	}
	if !isURL(a.server) {
		s, ok := l.Find(a.server)
		if !ok {
			return place{}, noServer(l, a.server)
		}
		return keptPlace(s, byFlag)
	}
	if s, ok := l.At(tidy(a.server)); ok && s.Token != "" {
		return keptPlace(s, byFlag)
	}
	if url != "" && tidy(url) != tidy(a.server) {
		token = ""
	}
	return place{url: tidy(a.server), token: token, by: byFlag}, nil
}

func keptPlace(s servers.Server, by naming) (place, error) {
	if s.Token == "" {
		return place{}, fault.New(fault.Unauthenticated, "there is no token for the server %s (%s): it was signed out of", s.Name, s.URL).
			WithRemedy("sign in again with: sandpit login %s", s.Name)
	}
	return place{url: s.URL, token: s.Token, by: by, kept: s.Name}, nil
}

// noToken is the failure of having none for a server elsewhere.
func noToken(url string) error {
	return fault.New(fault.Unauthenticated, "there is no token for the server at %s", url).
		WithRemedy("sign in with: sandpit login %s (or set SANDPIT_TOKEN); sandpit token create, on the server, makes a token", url)
}

// client returns a client of the server to speak to.
func (a *app) client() (*client.Client, error) {
	p, err := a.locate()
	if err != nil {
		return nil, err
	}
	return a.clientOf(p), nil
}

func (a *app) clientOf(p place) *client.Client {
	return client.New(p.url, p.token, client.Options{UserAgent: "sandpit/" + a.version, Waiting: a.waiting})
}

// remedy is the next step after an error, which for a kept server is another than its own answer says.
func (a *app) remedy(err error) string {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return ""
	}
	if name := a.kept.Load(); name != nil && *name != "" && e.Code == fault.Unauthenticated {
		return "sign in again with: sandpit login " + *name
	}
	return e.Remedy
}

// waiting says that a server is gone and that it is tried again: else a command just stands there.
func (a *app) waiting(err error, until time.Time) {
	line, stop := "sandpit: %s; trying again until %s; %s to stop\n", "Ctrl-C"
	if a.raw.Load() {
		line, stop = "\r\n"+line[:len(line)-1]+"\r\n", "the detach keys"
	}
	fmt.Fprintf(a.stderr, line, printable(whole(err)), until.Format(time.TimeOnly), stop)
}
