// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// streamStdin makes f the input of a process, before anybody else knows it.
func (p *process) streamStdin(f *os.File) {
	p.stdin, p.stdinTurn = f, make(chan struct{}, 1)
}

// takeStdin waits for the turn of writing to stdin; give it back by giveStdin.
func (p *process) takeStdin(ctx context.Context) error {
	select {
	case p.stdinTurn <- struct{}{}:
		return nil
	case <-p.ended:
		return hasEnded(p.rec.ID)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *process) giveStdin() { <-p.stdinTurn }

// writeStdin blocks while the program does not read, until ctx is done. It gives
// how much was taken, with an error where that is not all.
func (p *process) writeStdin(ctx context.Context, b []byte) (int, error) {
	if p.stdinTurn == nil {
		return 0, noStdin(p.rec.ID)
	}
	if err := p.takeStdin(ctx); err != nil {
		return 0, err
	}
	defer p.giveStdin()
	return p.writeInTurn(ctx, b)
}

func (p *process) writeInTurn(ctx context.Context, b []byte) (int, error) {
	p.stdinMu.Lock()
	f := p.stdin
	p.stdinMu.Unlock()
	if f == nil {
		return 0, unix.EPIPE
	}
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = f.SetWriteDeadline(longAgo)
		close(fired)
	})
	if len(b) > wire.MaxData { // so that program and writer do not wait for each other at every turn
		p.wideStdin.Do(func() {
			if raw, err := f.SyscallConn(); err == nil {
				_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, widePipe) }) // as the output's: see widen
			}
		})
	}
	n, err := f.Write(b)
	if !stop() {
		<-fired // the deadline must not reach the next writer
		_ = f.SetWriteDeadline(time.Time{})
	}
	p.stdinTaken.Add(int64(n))
	return n, err
}

// serveInput answers an input: it writes a piece to a streamed stdin.
func (s *Server) serveInput(ctx context.Context, c *call.Conn, req *wire.Request) error {
	in, most := req.Input, wire.MaxData
	if req.Op == wire.OpLargeInput {
		most = wire.MaxLargeInput
	}
	if in == nil || in.Size < 0 || in.Size > most {
		return fault.InvalidField("input", "is missing, or has not 0 to %d bytes", most)
	}
	piece := make([]byte, 0, in.Size)
	for len(piece) < in.Size {
		b, err := c.Data()
		if err != nil {
			return err
		}
		if b == nil || len(b) > in.Size-len(piece) {
			return fault.New(fault.Malformed, "the input was said to have %d bytes, and has not", in.Size)
		}
		piece = append(piece, b...)
	}
	p, err := s.running(req.ID)
	if err != nil {
		return err
	}
	ctx, done := c.Until(ctx)
	defer done()
	if in.PatienceMS > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(in.PatienceMS)*time.Millisecond)
		defer cancel()
	}
	taken, err := p.input(ctx, piece, in)
	if err != nil {
		return err
	}
	return c.Answer(taken)
}

// input takes a piece as far as the program and ctx allow.
func (p *process) input(ctx context.Context, piece []byte, in *wire.Input) (wire.Taken, error) {
	if p.stdinTurn == nil {
		return wire.Taken{}, noStdin(p.rec.ID)
	}
	if err := p.takeStdin(ctx); errors.Is(err, context.DeadlineExceeded) { // others write all the time
		return wire.Taken{Total: p.stdinTaken.Load()}, nil
	} else if err != nil {
		return wire.Taken{}, err
	}
	defer p.giveStdin()
	before, all := 0, p.stdinTaken.Load()
	if in.Offset > all {
		return wire.Taken{}, fault.InvalidField("offset", "%d is beyond what was taken of the input, %d bytes", in.Offset, all).
			WithRemedy("go on from there")
	}
	if in.Offset >= 0 {
		before = int(min(all-in.Offset, int64(len(piece))))
	}
	var err error
	n := 0
	if before < len(piece) {
		n, err = p.writeInTurn(ctx, piece[before:])
	}
	taken := wire.Taken{Bytes: before + n, Total: p.stdinTaken.Load()}
	switch {
	case err == nil:
		if in.End {
			p.closeStdin()
		}
		p.stdinMu.Lock()
		taken.Closed = p.stdin == nil
		p.stdinMu.Unlock()
		return taken, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return taken, nil
	case p.hasEnded():
		return taken, hasEnded(p.rec.ID)
	}
	return taken, fault.Wrap(fault.State, err, "the standard input of process %s is closed, after %d bytes in all", p.rec.ID, taken.Total)
}

func noStdin(id string) error {
	return fault.New(fault.State, "process %s has no streamed standard input", id).
		WithRemedy("start the process with one, to write to it later")
}
