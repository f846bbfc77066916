// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/pausing"
	"sandpit.dev/engine/process"
	"sandpit.dev/engine/window"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// follower follows one command to its end and completes its event, whoever else
// goes away. It owns the use that the command is. At first the goroutine of the
// caller does the work, see attend: to hand each command to another one and back
// would cost more than following it. When the caller leaves, stay goes on.
type follower struct {
	u       *Use
	event   *sandbox.Event // the unfinished row
	process *agent.Process // nil: attach first
	window  window.Window  // on which files change
	limit   time.Time      // when to give up on an agent that does not end it; zero: never
	slept   time.Duration  // that the sandbox was paused before limit was set; what comes on top puts it off
	seen    int64          // of the last frame
	got     [3]int64       // bytes of the frames, by stream
	last    int64          // of a process that went down with its sandbox: the number of its last frame
	// lossless: the process waits for this follower, as long as somebody takes the output.
	lossless bool
	guest    bool // the row is another follower's, who alone tells what a lost command means

	mu         sync.Mutex
	take       func(sandbox.Frame) error // who gets the frames; nil: nobody
	sinkFailed func()                    // called when take failed; ends the following here
	sinkErr    error
	output     budget.Output // without a sink: what is kept
	collects   bool
}

func newFollower(u *Use, ev *sandbox.Event, timeout time.Duration) *follower {
	f := &follower{u: u, event: ev}
	if s := u.b.record.Load(); s != nil && ev.Seq > 0 && s.StartProcess() == ev.ProcessID {
		u.b.unhold(u.e.now(), u.what)
		u.what = actAside
	}
	if timeout > 0 {
		f.limit, f.slept = time.Now().Add(timeout+overtime), u.l.pauses.Total()
	}
	return f
}

// limited returns a context that ends with ctx, or when it is time to give up.
func (f *follower) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.limit.IsZero() {
		return ctx, func() {}
	}
	l := f.u.l
	return f.u.e.unlessPaused(ctx, l, time.Until(f.limit)+l.pauses.Total()-f.slept)
}

// overtime is how much longer than a command's own limit an agent may take to
// end it. Only a broken or hostile one does.
const overtime = time.Minute

// give has the output of a command go to sink, or without one be collected.
func (f *follower) give(cmd *agent.Command, sink func(sandbox.Frame) error, room *budget.Room) {
	if f.take = sink; sink == nil {
		f.collects, f.output = true, budget.NewOutput(room, [2]int64{cmd.MaxStdout, cmd.MaxStderr})
	}
}

// detach ends the taking: after it take is not called any more, and nothing is kept. It
// gives what there is so far.
func (f *follower) detach() ExecResult {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := ExecResult{ProcessID: f.event.ProcessID, Running: true}
	f.kept(&r)
	f.take, f.collects, f.lossless = nil, false, false
	f.output.Drop()
	return r
}

// kept puts what was kept of the output into r.
func (f *follower) kept(r *ExecResult) {
	data, cut := f.output.Kept(), f.output.Truncated()
	r.Stdout, r.Stderr = data[0], data[1]
	r.StdoutTruncated = r.StdoutTruncated || cut[0]
	r.StderrTruncated = r.StderrTruncated || cut[1]
}

// attend follows the command on behalf of the caller, whose Wait runs since began: on a
// busy host the start alone can take seconds.
func (f *follower) attend(ctx context.Context, r ExecRequest, began time.Time) (ExecResult, error) {
	e := f.u.e
	here, leave := e.group.Bind(ctx)
	defer leave()
	if r.Wait > 0 {
		var cancel context.CancelFunc
		here, cancel = context.WithDeadline(here, began.Add(r.Wait))
		defer cancel()
	}
	f.sinkFailed = leave
	res, err := f.follow(here)
	if err == nil {
		return f.conclude(ctx, res), nil
	}
	left := f.detach()
	if e.group.Context().Err() != nil {
		f.abandon()
		return left, core.Stopping()
	}
	gone := f.sinkErr
	if gone == nil {
		gone = ctx.Err()
	}
	if gone != nil && r.KillOnDisconnect {
		f.kill()
	}
	e.group.Spawn(f.stay)
	return left, gone // nil: Wait passed
}

// abandon leaves the command to the next server.
func (f *follower) abandon() {
	f.hangUp()
	f.u.End()
}

// hangUp ends the connection to the agent. The process itself is ended, or goes
// on without us.
func (f *follower) hangUp() {
	if f.process != nil {
		_ = f.process.Close()
	}
}

// conclude makes the result, and has it committed behind the caller's back: the
// row is there since the intent, and until the commit the agent keeps the result
// for the repair after a crash.
func (f *follower) conclude(ctx context.Context, res sandbox.Result) ExecResult {
	e := f.u.e
	e.core.Checkpoint("exec.ended")
	r := f.complete(ctx, res)
	if f.event.Type == sandbox.EventExec {
		r.SnapshotID = f.u.KeepChanges(ctx, f.event, r.ChangesTotal, r.ChangesComplete)
	}
	e.core.Metrics.Ran(f.event, &res)
	end := e.outcomes.Begin(f.u.b)
	e.group.Spawn(func(ctx context.Context) {
		defer f.u.End()
		defer end()
		e.core.Checkpoint("exec.answered")
		f.record(ctx, r)
		e.core.Checkpoint("exec.outcome")
		f.hangUp()
		f.u.expect()
	})
	return r
}

// expect makes the connection ahead that the next command takes.
func (u *Use) expect() {
	if x, ok := u.l.inst.(runtime.Expecter); ok {
		x.Expect()
	}
}

// follow returns the command's result. The error is ctx's; follow may then be
// called again and goes on where it was.
func (f *follower) follow(ctx context.Context) (sandbox.Result, error) {
	limited, cancel := f.limited(ctx)
	defer cancel()
	for lost := 0; ; {
		if f.process == nil {
			p, err := f.u.l.client.AttachAs(limited, f.event.ProcessID, agent.Attaching{After: f.seen, Lossless: f.lossless})
			if err == nil {
				f.process, lost = p, 0
				continue
			}
			if res, over, err := f.astray(ctx, limited, err, &lost); over {
				return res, err
			}
			continue
		}
		f.process.Borrowed = f.lossless
		fr, err := f.process.Next(limited)
		switch {
		case err == nil:
			f.seen = fr.Seq
			f.got[fr.Stream] += int64(len(fr.Data))
			f.deliver(ctx, fr)
			if ctx.Err() != nil { // a sink that failed ends it at once
				return sandbox.Result{}, ctx.Err()
			}
		case err == io.EOF: // itself: a connection that broke may wrap it
			return f.u.l.told(f.event.ProcessID, f.process.Result()), nil
		case ctx.Err() != nil:
			return sandbox.Result{}, ctx.Err()
		default:
			_ = f.process.Close()
			f.process = nil
			if res, over, err := f.astray(ctx, limited, err, &lost); over {
				return res, err
			}
		}
	}
}

func (f *follower) deliver(ctx context.Context, fr sandbox.Frame) {
	if f.collects {
		f.output.Reserve(ctx, int(fr.Stream-sandbox.Stdout), len(fr.Data))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.collects {
		f.output.Write(int(fr.Stream-sandbox.Stdout), fr.Data)
	}
	if f.take == nil {
		return
	}
	if err := f.take(fr); err != nil {
		f.take, f.sinkErr = nil, err
		f.sinkFailed()
	}
}

// Bounds of looking for a command whose connection broke.
const (
	lostTries = 20
	lostPause = 250 * time.Millisecond
)

// astray decides what a lost connection means: ctx is over, the sandbox is down,
// the command is unknown, or the agent is to be asked again (not over).
func (f *follower) astray(ctx, limited context.Context, err error, lost *int) (sandbox.Result, bool, error) {
	select {
	case <-f.u.l.down:
		return f.exited(), true, nil
	default:
	}
	switch {
	case ctx.Err() != nil:
		return sandbox.Result{}, true, ctx.Err()
	case pausing.Left(limited):
		return sandbox.Result{}, true, core.Stopping()
	case limited.Err() != nil:
		return f.overdue(ctx), true, nil
	case errors.Is(err, agent.ErrSilent):
		return sandbox.Result{}, false, nil // it is not lost
	case fault.Is(err, fault.NotFound):
		if f.guest {
			return sandbox.Result{}, true, err
		}
		if f.u.wentDown(ctx) {
			return f.exited(), true, nil
		}
		if ctx.Err() != nil {
			return sandbox.Result{}, true, ctx.Err()
		}
		return f.killed(sandbox.CauseHost, "the sandbox's agent does not know the command any more"), true, nil
	}
	if *lost++; *lost > lostTries {
		return f.killed(sandbox.CauseHost, "the sandbox's agent does not answer"), true, nil
	}
	t := time.NewTimer(lostPause)
	defer t.Stop()
	select {
	case <-f.u.l.down:
	case <-t.C:
	case <-limited.Done():
	}
	return sandbox.Result{}, false, nil
}

// overdue ends a command that its agent let run past its limit.
func (f *follower) overdue(ctx context.Context) sandbox.Result {
	kctx, cancel := f.u.e.unlessPaused(context.WithoutCancel(ctx), f.u.l, killBound)
	defer cancel()
	if err := f.u.l.client.Kill(kctx, f.event.ProcessID, sandbox.CauseTimeout); err != nil {
		f.u.e.core.Log.Error("a command past its limit cannot be killed", "sandbox", f.u.b.id, "process", f.event.ProcessID, "error", err)
	}
	return f.killed(sandbox.CauseTimeout, "its time limit passed, and its agent did not end it")
}

// exited is the result of a command whose sandbox went down under it.
func (f *follower) exited() sandbox.Result {
	seen := process.Unseen(f.event, f.u.e.now())
	seen.LastSeq, seen.Result.StdoutBytes, seen.Result.StderrBytes = f.seen, f.got[sandbox.Stdout], f.got[sandbox.Stderr]
	rec := f.u.l.ended(f.event.ProcessID, seen)
	f.last = rec.LastSeq
	res := *rec.Result
	f.u.l.signals.Tell(f.event.ProcessID, &res)
	return res
}

func (f *follower) killed(cause sandbox.Cause, detail string) sandbox.Result {
	at := f.u.e.now()
	res := sandbox.Result{
		ExitCode: process.ExitKilled, Signal: "SIGKILL", Cause: cause, CauseDetail: detail,
		Duration: max(at.Sub(f.event.At), 0), EndedAt: at,
		StdoutBytes: f.got[sandbox.Stdout], StderrBytes: f.got[sandbox.Stderr],
	}
	f.u.l.signals.Tell(f.event.ProcessID, &res)
	return res
}

// complete makes the whole result of what the agent told.
func (f *follower) complete(ctx context.Context, res sandbox.Result) ExecResult {
	f.mu.Lock()
	r := ExecResult{ProcessID: f.event.ProcessID, Result: res}
	f.kept(&r)
	f.mu.Unlock()
	c := f.window.Close(ctx)
	r.Changes, r.ChangesTotal, r.ChangesComplete, r.NoArtifacts = c.Files, c.Total, c.Complete, c.NoArtifacts
	return r
}

// record commits the result.
func (f *follower) record(ctx context.Context, r ExecResult) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitBound)
	defer cancel()
	if err := f.u.e.finish(ctx, f.u.b, f.event, r); err != nil {
		// The command did end so; the caller learns it, and the agent keeps it for
		// the repair at the next start.
		f.u.e.core.Log.Error("the end of a command cannot be recorded; the next start does it", "sandbox", f.u.b.id, "process", f.event.ProcessID, "error", err)
	}
}

// notBegun completes the row of a command that could not be started.
func (f *follower) notBegun(ctx context.Context, err error) {
	e, ev := f.u.e, f.event
	f.window.Close(ctx)
	why := process.NotStarted
	switch code := fault.Of(err); {
	case errors.Is(err, agent.ErrSilent):
		// It begins nothing for a caller that gave up, unless it is of an earlier build.
		why = process.UnknownStart
	case code == fault.Unavailable, code == fault.Timeout, code == fault.Canceled, code == fault.Internal:
		// The answer was lost, and the command may have begun without us.
		why = process.UnknownStart
		if err := f.u.l.client.Kill(ctx, ev.ProcessID, sandbox.CauseHost); err != nil && !fault.Is(err, fault.NotFound) {
			e.core.Log.Warn("whether a command was begun is not known", "sandbox", f.u.b.id, "process", ev.ProcessID, "error", err)
		}
	}
	process.NotBegun(ev, why, err, e.now())
	dbErr := e.tally(ctx, f.u.b, func(*sandbox.Sandbox) {}, func(tx store.Tx) error { return tx.Events().Finish(ev) })
	if dbErr != nil && !fault.Is(dbErr, fault.Conflict) {
		e.core.Log.Error("the end of a command cannot be recorded; the next start does it", "sandbox", f.u.b.id, "process", ev.ProcessID, "error", dbErr)
	}
}

// finish commits a command's result: its row, and the sandbox's counters.
func (e *Engine) finish(ctx context.Context, b *entry, ev *sandbox.Event, r ExecResult) error {
	if l := b.standing(); l != nil {
		defer l.signals.Over(ev.ProcessID)
	}
	process.Close(ev, &r.Result)
	ev.Changes, ev.ChangesTotal = r.Changes[:min(len(r.Changes), sandbox.MaxEventChanges)], r.ChangesTotal
	err := e.tally(ctx, b, func(s *sandbox.Sandbox) {
		if ev.Type == sandbox.EventExec {
			s.ExecCount++
			s.ExecTime += r.Duration
		}
	}, func(tx store.Tx) error { return tx.Events().Finish(ev) })
	if fault.Is(err, fault.Conflict) {
		err = nil // its sandbox is being deleted, and the row was completed with that
	}
	return err
}
