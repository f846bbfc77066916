// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"time"

	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// place is where a server is, and as whom to speak to it.
type place struct {
	url, token string
	data       string // of a server on this machine; else ""
	tokenFile  string // where the token was read; else ""
}

// locate finds the server to speak to.
func (a *app) locate() (place, error) {
	return a.located(place{
		url:   a.getenv("SANDPIT_URL"),
		token: cmp.Or(a.getenv("SANDPIT_TOKEN"), a.getenv("SANDPIT_ADMIN_TOKEN")),
	})
}

// noToken is the failure of having none for a server elsewhere.
func noToken(url string) error {
	return fault.New(fault.Unauthenticated, "there is no token for the server at %s", url).
		WithRemedy("set SANDPIT_TOKEN; sandpit token create makes a token")
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

// waiting says that a server is gone and that it is tried again: else a command just stands there.
func (a *app) waiting(err error, until time.Time) {
	line, stop := "sandpit: %s; trying again until %s; %s to stop\n", "Ctrl-C"
	if a.raw.Load() {
		line, stop = "\r\n"+line[:len(line)-1]+"\r\n", "the detach keys"
	}
	fmt.Fprintf(a.stderr, line, printable(whole(err)), until.Format(time.TimeOnly), stop)
}
