// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/wire"
)

// everything returns the tree whose changes are told: all files, whoever may read them, as root sees
// them, but for the agent's own logs.
func (s *Server) everything() dirs.Root {
	return dirs.Root{
		Dir: s.o.Dir,
		Do: func(fn func()) {
			v, err := s.view("root", true)
			if err != nil {
				v = s.o.User
			}
			v.Do(fn)
		},
		Hidden: func() (dirs.ID, bool) {
			var st unix.Stat_t
			err := unix.Fstat(s.logDir, &st)
			return dirs.ID{Dev: st.Dev, Ino: st.Ino}, err == nil
		},
	}
}

// serveChanges looks at a directory twice, and tells the difference.
func (s *Server) serveChanges(ctx context.Context, c *call.Conn, req *wire.Request) error {
	p, err := s.files.Absolute("path", req.Path)
	if err != nil {
		return err
	}
	w, err := s.changed.Begin(ctx, p)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := c.Send(wire.Reply, struct{}{}); err != nil {
		return err
	}
	if err := c.End(); err != nil {
		return err
	}
	changes, err := w.End(ctx)
	if err != nil {
		return err
	}
	return changes.Send(c.Send)
}

// serveWatch sends changes as they happen.
func (s *Server) serveWatch(ctx context.Context, c *call.Conn, req *wire.Request) error {
	p, err := s.files.Absolute("path", req.Path)
	if err != nil {
		return err
	}
	ctx, done := c.Until(ctx)
	defer done()
	return s.watched.Serve(ctx, p, req.Recursive, c.Send)
}
