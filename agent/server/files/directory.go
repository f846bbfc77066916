// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// directory is the one that a call lists, or searches.
type directory struct {
	v    view.View // whose rights the call has
	path string
	fd   int // who opens it closes it
	st   unix.Stat_t
}

// of returns what a call is about, which is not open yet.
func (s *Service) of(req *wire.Request) (directory, error) {
	v, err := s.o.View(req.User, req.AsRoot)
	if err != nil {
		return directory{}, err
	}
	p, err := s.Absolute("path", req.Path)
	return directory{v: v, path: p, fd: -1}, err
}

// open opens it for what the call does, in a word for people.
func (d *directory) open(s *Service, do string) (err error) {
	d.v.Do(func() { d.fd, d.st, err = s.openListed(d.path) })
	if err != nil {
		return fileFault(d.v, do, d.path, err)
	}
	return nil
}

// info is what the call's answer begins with.
func (d *directory) info() wire.FileInfo {
	fi := describe(baseOf(shown(d.path)), &d.st)
	fi.Path = shown(d.path)
	return fi
}

// turn waits for the turn of a call that takes long: one at a time, it is the agent's processor time that is spent.
func (s *Service) turn(ctx context.Context) (end func(), err error) {
	select {
	case s.seeking <- struct{}{}:
		return func() { <-s.seeking }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// listLimit is how many entries a list has at most.
func listLimit(asked int) (int, error) {
	switch {
	case asked == 0:
		return wire.DefaultListSize, nil
	case asked < 0 || asked > wire.MaxListSize:
		return 0, fault.InvalidField("limit", "%d is outside 1 to %d", asked, wire.MaxListSize)
	}
	return asked, nil
}
