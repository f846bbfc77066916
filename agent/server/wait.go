// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/wire"
)

// serveWait answers a wait: it tells of a process's end and nothing of its output.
func (s *Server) serveWait(ctx context.Context, c *call.Conn, req *wire.Request) error {
	p := s.find(req.ID)
	if p == nil {
		rec, err := s.record(req.ID)
		if err != nil {
			return err
		}
		if rec.Result != nil {
			return sendEnded(c, rec)
		}
		if p = s.find(req.ID); p == nil { // it was being started, and is not any more
			return noProcess(req.ID)
		}
	}
	if err := c.Send(wire.Reply, p.snapshot()); err != nil {
		return err
	}
	ctx, done := c.Until(ctx)
	defer done()
	if err := p.done(ctx); err != nil {
		return err
	}
	rec := p.snapshot()
	return c.Send(wire.Done, wire.Ending{Result: *rec.Result, LastSeq: rec.LastSeq})
}

// sendEnded answers with the record of a process that has ended.
func sendEnded(c *call.Conn, rec wire.Record) error {
	if err := c.Send(wire.Reply, rec); err != nil {
		return err
	}
	return c.Send(wire.Done, wire.Ending{Result: *rec.Result, LastSeq: rec.LastSeq})
}
