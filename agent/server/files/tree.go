// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/internal/glob"
)

// Tree sends what is below a directory, in the order of the paths, to a depth. It is a search for every file: bounded in
// time, in names, in bytes and in entries, whatever is there.
func (s *Service) Tree(ctx context.Context, c *call.Conn, req *wire.Request) error {
	d, err := s.of(req)
	if err != nil {
		return err
	}
	limit, err := listLimit(req.Limit)
	if err != nil {
		return err
	}
	if req.Depth < 1 || req.Depth > wire.MaxListDepth {
		return fault.InvalidField("depth", "%d is outside 1 to %d", req.Depth, wire.MaxListDepth)
	}
	all, _ := glob.New("")
	x := &search{s: s, v: d.v, glob: all, depth: req.Depth, limit: limit, most: maxScan}
	if req.Beyond != "" {
		after := wire.UnescapeName(req.Beyond)
		if len(after) > wire.MaxPath {
			return fault.InvalidField("after", "has %d bytes, more than %d", len(after), wire.MaxPath)
		}
		x.after = strings.Split(after, "/")
	}
	leave, err := s.turn(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := d.open(s, "list"); err != nil {
		return err
	}
	x.ctx, x.c = ctx, c
	x.tree = &entryWriter{c: c, names: s.names(d.v), compact: true}
	x.until = time.Now().Add(wire.MaxSearchSeconds * time.Second)
	if err := c.Send(wire.Reply, d.info()); err != nil {
		_ = unix.Close(d.fd)
		return err
	}
	err = x.walk(d.fd, nil, d.st.Dev)
	end, ended := errors.AsType[searchDone](err)
	if ended {
		err = nil
	}
	if err == nil {
		err = x.tree.flush()
	}
	if err != nil {
		return err
	}
	return c.Send(wire.Done, wire.Listing{Truncated: end != "", Closed: x.sum.Closed})
}

// giveEntry sends an entry of a tree.
func (x *search) giveEntry(rel []string, fi *wire.FileInfo) error {
	if x.found == x.limit {
		return searchDone(wire.EndedByLimit)
	}
	x.found++
	fi.Path = wire.EscapeName(strings.Join(rel, "/"))
	more, err := x.tree.add(fi)
	if more {
		return searchDone(wire.EndedByLimit)
	}
	return err
}

// namesOf reads the names of a directory, as many as there is room for. Of a tree all levels share it, and a
// list that goes on begins where it has to.
func (x *search) namesOf(dir *os.File, rel []string) (names []string, truncated bool, err error) {
	limit, room := sortedNames, keptNames
	wanted := func(string) bool { return true }
	if x.tree != nil {
		limit, room = wire.MaxListSize+1, max(0, keptNames-x.held)
		if len(rel) < len(x.after) && x.order(rel) == 0 {
			from := x.after[len(rel)]
			wanted = func(name string) bool { return name >= from }
		}
	}
	return smallest(dir, limit, room, wanted)
}

func sizeOf(names []string) (n int) {
	for _, name := range names {
		n += len(name)
	}
	return n
}
