// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package place

import "sandpit.dev/fault"

// Located reports what p lacks: no server runs on this machine.
func (*Finder) Located(p Server) (Server, error) {
	switch {
	case p.URL == "":
		return Server{}, fault.New(fault.Unavailable, "no server is named, and none runs on this machine: servers need Linux").
			WithRemedy("use one elsewhere, with: sandpit login URL (or set SANDPIT_URL and SANDPIT_TOKEN)")
	case p.Token == "":
		return Server{}, noToken(p.URL)
	}
	return p, nil
}

// LocalURL returns nothing: no server runs here.
func (*Finder) LocalURL() (url string, runsHere bool) { return "", false }
