// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"io"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/descriptor"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// follow sends the output from a place in the log on, what comes while the process runs,
// and its end. It reads the log, so that a slow follower holds up nobody and
// costs the same as a fast one. gone ends it when the client left, and ctx when the connection
// was closed from here: the reader, which would tell of either, may wait for the program to read.
//
// A reader, if not nil, is who the program waits for.
func (p *process) follow(ctx context.Context, c *call.Conn, off int64, r *reader, gone <-chan struct{}) (err error) {
	for {
		p.mu.Lock()
		p.gotOnLocked(r, off)
		end, res, seq := p.log.end(), p.rec.Result, p.log.seq
		var more chan struct{}
		var rest []byte // what is left to send of a process that has ended, if that is in memory
		switch {
		case res != nil:
			rest = append(rest, p.log.tailAt(off)...)
		case off == end:
			if p.more == nil {
				p.more = make(chan struct{})
			}
			more = p.more
		}
		p.mu.Unlock()
		switch {
		case res != nil && off+int64(len(rest)) == end:
			return c.Conclude(rest, wire.Ending{Result: *res, LastSeq: seq})
		case off < end:
			if off, err = p.copyLog(c, off); err != nil {
				return err
			}
		default:
			select {
			case <-more:
			case <-gone:
				return nil
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// seek returns the place after a frame, or of the last of the output if recent is not 0.
func (p *process) seek(after, recent int64) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.log
	if after < 0 || after > l.seq {
		return 0, badCursor(after, l.seq)
	}
	off, err := seek(l.fd, max(l.floor, l.near(after)), l.size, after)
	if err == nil && recent > 0 {
		off, err = seekRecent(l, off, l.end(), recent)
	}
	if err != nil {
		return 0, fault.Wrap(fault.Internal, err, "the log of process %s could not be read", p.rec.ID)
	}
	if after > 0 && off >= l.size {
		off += seekTail(l.tail[off-l.size:], after)
	}
	return off, nil
}

// copyLog sends a piece of the log from off on, and gives where the next begins.
func (p *process) copyLog(c *call.Conn, off int64) (int64, error) {
	p.mu.Lock()
	tail := p.log.tailAt(off)
	if len(tail) > 0 {
		tail = append([]byte(nil), tail...)
	}
	p.mu.Unlock()
	if len(tail) > 0 {
		n, err := c.Write(tail)
		return off + int64(n), err
	}
	return p.copyFrames(c, off)
}

// sendFile sends one buffer's worth of the file's bytes from off to end.
func (s *Server) sendFile(c *call.Conn, fd int, off, end int64) (int64, error) {
	buf := s.memory.Get()
	defer s.memory.Put(buf)
	n := min(int64(len(buf)), end-off)
	got, err := descriptor.File(fd).ReadAt(buf[:n], off)
	if got == 0 && err != nil {
		if err == io.EOF {
			return off, fault.New(fault.Internal, "the log of a process became shorter")
		}
		return off, fault.Wrap(fault.Internal, err, "the log of a process could not be read")
	}
	_, err = c.Write(buf[:got])
	return off + int64(got), err
}

// replay sends a finished log.
func (s *Server) replay(c *call.Conn, l *storedLog, after, recent int64) error {
	if after < 0 || after > l.rec.LastSeq {
		return badCursor(after, l.rec.LastSeq)
	}
	off, err := seek(l.fd, l.first, l.end, after)
	if err == nil && recent > 0 {
		off, err = seekRecent(descriptor.File(l.fd), off, l.end, recent)
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the log of process %s could not be read", l.rec.ID)
	}
	for off < l.end {
		if off, err = s.sendFile(c, l.fd, off, l.end); err != nil {
			return err
		}
	}
	return c.Conclude(nil, wire.Ending{Result: *l.rec.Result, LastSeq: l.rec.LastSeq})
}

func badCursor(after, last int64) error {
	return fault.InvalidField("after", "%d is not a frame of this process; its last one is %d", after, last).
		WithRemedy("pass the number of a frame that you have seen, or 0 for all of them")
}

// serveAttach answers an attach.
func (s *Server) serveAttach(ctx context.Context, c *call.Conn, req *wire.Request) error {
	if req.Recent < 0 {
		return fault.InvalidField("recent", "%d is below 0", req.Recent)
	}
	p := s.find(req.ID)
	if p == nil {
		if f := s.budget.read(req.ID); f != nil { // it stays while it is read
			defer s.budget.done(f)
		}
		l, err := s.openLog(req.ID)
		if err != nil {
			return err
		}
		defer l.close()
		if err := c.Send(wire.Reply, l.rec); err != nil {
			return err
		}
		return s.replay(c, l, req.After, req.Recent)
	}
	if !p.hold() {
		return s.serveAttach(ctx, c, req) // it was put away meanwhile: its log is on disk
	}
	defer p.release()
	// Before the reply, though it fails after that: what is recent is what was by then.
	off, unknown := p.seek(req.After, req.Recent)
	if err := c.Send(wire.Reply, p.snapshot()); err != nil {
		return err
	}
	if unknown != nil {
		return unknown
	}
	return p.serve(ctx, c, off, req.Lossless)
}

// serve follows for one connection, and carries its input to the program.
func (p *process) serve(ctx context.Context, c *call.Conn, off int64, lossless bool) error {
	r := p.beginReader(off, lossless)
	defer p.endReader(r)
	gone := make(chan struct{})
	p.srv.conns.Add(1) // the reader counts as a connection: it may outlive this one, in a write to a full pipe
	p.srv.work.Go(func() {
		defer p.srv.conns.Add(-1)
		defer close(gone)
		p.feed(c)
	})
	err := p.follow(ctx, c, off, r, gone)
	c.CloseRead()
	return err
}

// feed reads a connection until it ends, and writes what comes to stdin.
func (p *process) feed(c *call.Conn) {
	for {
		t, b, err := c.Next()
		switch {
		case err != nil:
			return
		case t == wire.Data:
			_, _ = p.writeStdin(p.srv.ctx, b) // what it will never read is dropped, as the kernel would
		case t == wire.End:
			p.closeStdin()
		case t == wire.Told && p.hosted != nil:
			end := new(wire.Result)
			if wire.Decode(b, end) != nil {
				return
			}
			p.hosted.tell(end)
		}
	}
}
