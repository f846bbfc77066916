// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// MaxFollowers is how many follow one process at a time.
const MaxFollowers = process.MaxFollowers

// What a following is asked for, what takes it and where it ended; see package process.
type (
	FollowRequest = process.FollowRequest
	FollowSink    = process.FollowSink
	FollowEnd     = process.FollowEnd
	Gap           = process.Gap
)

// Following is a process that somebody follows. It reads the process's log, so
// that however slow it is, the process does not wait for it. The sandbox is in use
// until Close.
type Following struct {
	f      *follower
	rec    sandbox.Process
	once   bool
	recent bool
	own    bool // the server's
}

// Follow begins to follow a process of a sandbox that is up, from any frame on. A
// process that has MaxFollowers is fault.Exhausted, a cursor that no frame had yet fault.Invalid; the kernel of a context is
// fault.State: what it writes is masked only on its way through the context. Close the Following.
func (e *Engine) Follow(ctx context.Context, c access.Caller, ref, processID string, r FollowRequest) (*Following, error) {
	processID, err := e.processID(ctx, c, ref, processID)
	if err != nil {
		return nil, err
	}
	if r.Cursor < 0 {
		return nil, fault.InvalidField("cursor", "%d is below 0", r.Cursor)
	}
	if r.Recent < 0 || r.Recent > 0 && r.Cursor > 0 {
		return nil, fault.InvalidField("recent", "%d is below 0, or beside a cursor", r.Recent)
	}
	u, err := e.peek(ctx, c, access.SandboxesRead, ref)
	if err != nil {
		return nil, err
	}
	if err := u.b.audience.Join(processID, r.Own); err != nil {
		u.End()
		return nil, err
	}
	leave := func() {
		u.b.audience.Leave(processID, r.Own)
		u.End()
	}
	var p *agent.Process
	if r.Recent > 0 {
		p, err = u.l.client.AttachRecent(ctx, processID, r.Recent)
	} else {
		p, err = u.l.client.Attach(ctx, processID, r.Cursor)
	}
	if err != nil {
		err = u.Fail(ctx, err)
		leave()
		return nil, err
	}
	rec := p.Record()
	if e.extension.Private(rec) {
		_ = p.Close()
		leave()
		return nil, fault.New(fault.State, "process %s is the kernel of a context or a shell, and speaks to the server alone", processID).
			WithRemedy("what its cells and commands wrote came with their results")
	}
	if r.Cursor > rec.LastSeq {
		_ = p.Close()
		leave()
		return nil, fault.InvalidField("cursor", "%d is not a frame of this process; its last one is %d", r.Cursor, rec.LastSeq).
			WithRemedy("pass the number of a frame that you have seen, or 0 for all of them")
	}
	one := []sandbox.Process{rec}
	if rec.Result != nil {
		if err := u.tellEnds(ctx, one); err != nil {
			_ = p.Close()
			leave()
			return nil, err
		}
	}
	if err := u.mark(ctx, one); err != nil {
		_ = p.Close()
		leave()
		return nil, err
	}
	rec = one[0]
	f := newFollower(u, &sandbox.Event{ProcessID: processID, At: rec.StartedAt}, 0)
	f.process, f.seen = p, r.Cursor
	return &Following{f: f, rec: rec, once: r.Once, recent: r.Recent > 0, own: r.Own}, nil
}

// Record is the process as it was when the following began.
func (g *Following) Record() sandbox.Process { return g.rec }

var errSeenAll = errors.New("all that was asked for was given out")

// Run returns out the output until the process has ended, ctx is done, the sink
// fails or the engine ends. It is called once.
func (g *Following) Run(ctx context.Context, sink FollowSink) (FollowEnd, error) {
	f, e := g.f, g.f.u.e
	here, leave := e.group.Bind(ctx)
	defer leave()
	once := g.once && g.rec.Result == nil
	if once && f.seen >= g.rec.LastSeq {
		return FollowEnd{LastSeq: f.seen}, nil
	}
	give := g.shared(here, g.continuous(sink))
	f.sinkFailed, f.take = leave, give
	if once {
		f.take = func(fr sandbox.Frame) error {
			err := give(fr)
			if err == nil && fr.Seq >= g.rec.LastSeq {
				err = errSeenAll
			}
			return err
		}
	}
	res, err := f.follow(here)
	switch {
	case err != nil:
	case g.rec.Result != nil:
		res = *g.rec.Result
	default:
		ended := g.rec
		ended.Result = &res
		if marked := f.u.markOne(ctx, &ended); marked != nil {
			e.core.Log.Warn("by whom a process was ended cannot be read", "sandbox", f.u.b.id, "process", ended.ID, "error", marked)
		}
	}
	end := FollowEnd{Ended: err == nil, Result: res, LastSeq: f.seen}
	if err == nil && f.last > f.seen {
		end.LastSeq = f.last
		if sink.Gap != nil {
			err := sink.Gap(Gap{Frames: f.last - f.seen, Why: "the sandbox went down before this was given out"})
			if err != nil {
				return end, err
			}
		}
	}
	switch {
	case err == nil:
		if g.rec.Rolling { // what it let go of was told where it is missing
			return end, nil
		}
		return end, sink.Lost(res)
	case errors.Is(f.sinkErr, errSeenAll):
		return end, nil
	case f.sinkErr != nil:
		return end, f.sinkErr
	case e.group.Context().Err() != nil:
		return end, core.Stopping()
	}
	return end, ctx.Err()
}

// shared returns give, slowed to the rate that all followers of the sandbox have together.
func (g *Following) shared(ctx context.Context, give func(sandbox.Frame) error) func(sandbox.Frame) error {
	if g.own {
		return give
	}
	return func(fr sandbox.Frame) error {
		if err := g.f.u.b.audience.Wait(ctx, len(fr.Data)); err != nil {
			return err
		}
		return give(fr)
	}
}

// continuous tells of frames that a rolling log has let go of before they were given
// out, and begins a terminal's recent output where its screen makes sense.
func (g *Following) continuous(sink FollowSink) func(sandbox.Frame) error {
	last, first := g.f.seen, true
	return func(fr sandbox.Frame) error {
		skipped := fr.Seq - last - 1
		missing := skipped > 0
		cut := first && g.recent && missing
		last, first = fr.Seq, false
		switch {
		case cut && g.rec.Terminal:
			if fr.Data = process.AfterCut(fr.Data); len(fr.Data) == 0 {
				return nil
			}
		case cut || !missing || sink.Gap == nil:
		default:
			why := "the process's log keeps the last of what it wrote, and has let go of this"
			if !g.rec.Rolling {
				why = "the logs of the sandbox's processes had no more room together, and the oldest of this one was let go of"
			}
			err := sink.Gap(Gap{Frames: skipped, Why: why})
			if err != nil {
				return err
			}
		}
		return sink.Frame(fr)
	}
}

// Close ends the following; the process goes on. It is called once, after Run.
func (g *Following) Close() {
	g.f.hangUp()
	g.f.u.b.audience.Leave(g.rec.ID, g.own)
	g.f.u.End()
}
