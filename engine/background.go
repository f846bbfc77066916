// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"
	"syscall"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Background is a process of a sandbox that is no use of it by itself: an interpreter that waits
// for work. It outlives the server; its event is completed when it ends, by this server or the
// next. Its output comes from its log, so that a connection that breaks loses nothing.
//
// Next, Gaps, Result and Close are for one goroutine at a time; the others for all.
type Background struct {
	u      *Use
	reader *follower // it ends no use
	lost   int
	over   bool
	result sandbox.Result
	gaps   int
}

// StartBackground commits ev, the event of a process, with what more writes, and starts it. cmd has an id,
// and was prepared. Where it does not begin, its event says so; whether ev was committed, begun tells. Have it watched.
func (u *Use) StartBackground(ctx context.Context, cmd agent.Command, ev *sandbox.Event, more func(store.Tx) error) (b *Background, begun bool, err error) {
	own, err := u.Again(actCode)
	if err != nil {
		return nil, false, err
	}
	ev.ProcessID, ev.User, ev.Cwd, ev.Command = cmd.ID, u.Account().Shown(cmd.User), cmd.Cwd, cmd.Argv[0]
	held, heldErr := u.l.client.Hold(ctx, cmd) // as in launch
	if err := own.Begin(ctx, ev, more); err != nil {
		if heldErr == nil {
			held.Drop()
		}
		own.End()
		return nil, false, err
	}
	var p *agent.Process
	if err = heldErr; err == nil {
		p, err = held.Start()
	}
	if err != nil {
		err = u.Fail(ctx, err)
		newFollower(own, ev, 0).notBegun(ctx, err)
		own.End()
		return nil, true, err
	}
	return own.background(ev, p, 0), true, nil
}

// AdoptBackground goes on with a process that somebody else started, behind the frame of its
// output with the number seen. p is a connection that is there; nil: it is made. Have it watched, or abandon it.
func (u *Use) AdoptBackground(ev *sandbox.Event, p *agent.Process, seen int64) (*Background, error) {
	own, err := u.Again(actCode)
	if err != nil {
		return nil, err
	}
	return own.background(ev, p, seen), nil
}

func (u *Use) background(ev *sandbox.Event, p *agent.Process, seen int64) *Background {
	b := &Background{u: u, reader: newFollower(u, ev, 0)}
	b.reader.process, b.reader.seen = p, seen
	return b
}

// ID returns the id of the process.
func (b *Background) ID() string { return b.reader.event.ProcessID }

// Up reports whether its sandbox is still up as it was when the process began.
func (b *Background) Up() bool { return b.u.b.standing() == b.u.l }

// Next returns the next frame of output, and io.EOF when the process has ended; see Result.
func (b *Background) Next(ctx context.Context) (sandbox.Frame, error) {
	f := b.reader
	for !b.over {
		if f.process == nil {
			p, err := f.u.l.client.Attach(ctx, f.event.ProcessID, f.seen)
			if err == nil {
				f.process, b.lost = p, 0
				continue
			}
			if err := b.astray(ctx, err); err != nil {
				return sandbox.Frame{}, err
			}
			continue
		}
		fr, err := f.process.Next(ctx)
		switch {
		case err == nil:
			if fr.Seq != f.seen+1 {
				b.gaps++
			}
			f.seen = fr.Seq
			return fr, nil
		case err == io.EOF: // itself: a connection that broke may wrap it
			b.end(f.u.l.told(f.event.ProcessID, f.process.Result()))
		case ctx.Err() != nil:
			return sandbox.Frame{}, ctx.Err()
		default:
			b.Close()
			if err := b.astray(ctx, err); err != nil {
				return sandbox.Frame{}, err
			}
		}
	}
	return sandbox.Frame{}, io.EOF
}

// astray decides what a lost connection means; nil: ask again.
func (b *Background) astray(ctx context.Context, err error) error {
	res, over, err := b.reader.astray(ctx, ctx, err, &b.lost)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if over && err == nil {
		b.end(res)
	}
	return err
}

func (b *Background) end(res sandbox.Result) {
	b.over, b.result = true, res
	b.Close()
}

// Gaps returns how often the log had dropped output before Next came to it.
func (b *Background) Gaps() int { return b.gaps }

// Result returns how the process ended, after Next has returned io.EOF.
func (b *Background) Result() sandbox.Result { return b.result }

// Close ends the connection. Next goes on with another one, unless the process has ended.
func (b *Background) Close() {
	b.reader.hangUp()
	b.reader.process = nil
}

// Greet writes the first words to the standard input of a process that was just started, by the connection that
// started it, and does not wait until they are taken. It is for the goroutine of Next. What is lost with a
// connection that breaks is missing: the process does not answer, or has ended.
func (b *Background) Greet(ctx context.Context, data []byte) error {
	_, err := b.reader.process.WriteBy(ctx, data)
	return err
}

// Write writes all of data to the standard input.
func (b *Background) Write(ctx context.Context, data []byte) error {
	for len(data) > 0 {
		taken, err := b.u.l.client.Input(ctx, b.ID(), agent.Input{Data: data[:min(len(data), agent.MaxInput)], Offset: -1})
		if err != nil {
			return err
		}
		data = data[taken.Bytes:]
		if ctx.Err() != nil && len(data) > 0 {
			return ctx.Err()
		}
	}
	return nil
}

// Interrupt sends SIGINT to the process and all that it started.
func (b *Background) Interrupt(ctx context.Context) error {
	return b.u.l.client.Signal(ctx, b.ID(), syscall.SIGINT, true)
}

// KillYounger kills what the process has started since a time. If it has ended, that is fault.State.
func (b *Background) KillYounger(ctx context.Context, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, agent.SilenceBound)
	defer cancel()
	return b.u.l.client.SignalYounger(ctx, b.ID(), syscall.SIGKILL, since)
}

// Kill is Use.Kill, and done where the sandbox went down.
func (b *Background) Kill(ctx context.Context) error {
	err := b.u.Fail(ctx, b.u.Kill(ctx, b.ID()))
	if err != nil && !b.Up() {
		return nil
	}
	return err
}

// Abandon leaves the process alone, in place of Watch.
func (b *Background) Abandon() { b.u.End() }

// Watch waits for the end of the process in a goroutine of the engine's, calls ended, and then
// completes the event. From now on the process keeps its sandbox from nothing. Where the engine
// ends before it does, ended gets nil, and the next server goes on.
func (b *Background) Watch(ended func(context.Context, *sandbox.Result)) {
	own := b.u
	own.b.unhold(own.e.now(), own.what)
	own.e.group.Spawn(func(ctx context.Context) {
		f := newFollower(own, b.reader.event, 0)
		res, err := f.await(ctx)
		if err != nil {
			ended(ctx, nil)
			own.b.occupy()
			f.abandon()
			return
		}
		ended(ctx, &res)
		own.b.occupy()
		f.conclude(ctx, res)
	})
}
