// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"runtime"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/internal/servers"
)

// Kept returns the servers that were signed in to.
func (f *Finder) Kept() (servers.List, error) {
	path, err := servers.Path(runtime.GOOS, f.Getenv)
	if err != nil { // there is no place where any could be
		return servers.List{}, nil
	}
	l, err := servers.Read(path)
	if err != nil {
		return l, fault.Wrap(fault.Unavailable, err, "the list of servers cannot be read").
			WithRemedy("mend or remove %s, and sign in again (sandpit login URL)", path)
	}
	return l, nil
}

// Keep changes the list of servers, and returns the path of its file.
func (f *Finder) Keep(change func(*servers.List) error) (path string, err error) {
	path, err = servers.Path(runtime.GOOS, f.Getenv)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "there is no place to keep servers at").WithRemedy("set HOME, or use SANDPIT_URL and SANDPIT_TOKEN")
	}
	l, err := f.Kept()
	if err != nil {
		return "", err
	}
	if err := change(&l); err != nil {
		return "", err
	}
	if err := l.Write(path); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "the list of servers cannot be written")
	}
	return path, nil
}

// NoServer is the failure of naming a server that was not signed in to.
func NoServer(l servers.List, name string) error {
	e := fault.New(fault.NotFound, "there is no server %q among those that you signed in to", name)
	if len(l.Servers) == 0 {
		return e.WithRemedy("sign in to it with: sandpit login URL")
	}
	return e.WithRemedy("use one of: %s, or sign in with: sandpit login URL", strings.Join(l.Names(), ", "))
}
