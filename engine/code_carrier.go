// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"
	"syscall"

	"sandpit.dev/agent"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
)

// carrier is the [kernel.Transport] of a kernel that is a process of a sandbox: its output comes
// from the process's log, so that a connection that breaks loses nothing.
type carrier struct {
	f    *follower // for what it knows of lost connections; it ends no use
	lost int
	over bool
	exit kernel.Exit
	gaps int // places where the log had let go of output that was not read yet
}

// newCarrier begins after the frame with the number seen. p, which may be nil, follows
// the process from there.
func newCarrier(u *use, ev *sandbox.Event, p *agent.Process, seen int64) *carrier {
	f := newFollower(u, ev, 0)
	f.process, f.seen = p, seen
	return &carrier{f: f}
}

func (t *carrier) Next(ctx context.Context) (kernel.Chunk, error) {
	f := t.f
	for !t.over {
		if f.process == nil {
			p, err := f.u.l.client.Attach(ctx, f.event.ProcessID, f.seen)
			if err == nil {
				f.process, t.lost = p, 0
				continue
			}
			if err := t.astray(ctx, err); err != nil {
				return kernel.Chunk{}, err
			}
			continue
		}
		fr, err := f.process.Next(ctx)
		switch {
		case err == nil:
			if fr.Seq != f.seen+1 {
				t.gaps++
			}
			f.seen = fr.Seq
			return kernel.Chunk{Seq: fr.Seq, Stderr: fr.Stream == agent.Stderr, Data: fr.Data}, nil
		case err == io.EOF: // itself: a connection that broke may wrap it
			t.end(f.u.l.told(f.process.Result()))
		case ctx.Err() != nil:
			return kernel.Chunk{}, ctx.Err()
		default:
			t.close()
			if err := t.astray(ctx, err); err != nil {
				return kernel.Chunk{}, err
			}
		}
	}
	return kernel.Chunk{}, io.EOF
}

// astray decides what a lost connection means; nil: ask again.
func (t *carrier) astray(ctx context.Context, err error) error {
	res, over, err := t.f.astray(ctx, ctx, err, &t.lost)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if over && err == nil {
		t.end(res)
	}
	return err
}

func (t *carrier) end(res agent.Result) {
	t.over, t.exit = true, exitOf(res)
	t.close()
}

// close ends the connection. Next goes on with another one, unless the process has ended.
func (t *carrier) close() {
	t.f.hangUp()
	t.f.process = nil
}

func (t *carrier) Write(ctx context.Context, b []byte) error {
	for len(b) > 0 {
		taken, err := t.f.u.l.client.Input(ctx, t.f.event.ProcessID, agent.Input{Data: b[:min(len(b), agent.MaxInput)], Offset: -1})
		if err != nil {
			return err
		}
		b = b[taken.Bytes:]
		if ctx.Err() != nil && len(b) > 0 {
			return ctx.Err()
		}
	}
	return nil
}

func (t *carrier) Interrupt(ctx context.Context) error {
	return t.f.u.l.client.Signal(ctx, t.f.event.ProcessID, syscall.SIGINT, true)
}

func (t *carrier) Exit() kernel.Exit { return t.exit }

func exitOf(res agent.Result) kernel.Exit {
	return kernel.Exit{Code: res.ExitCode, Signal: res.Signal, Cause: string(res.Cause)}
}
