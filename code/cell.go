// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"syscall"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/engine/window"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/internal/excerpt"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
)

// cell is one run of code. A goroutine of the engine's follows it to its end, also
// when the caller goes away. It has its context's lock, and a use of the sandbox.
type cell struct {
	s        *Service
	u        *engine.Use
	cc       *codeContext
	r        Request
	stdin    []byte // of a shell's command
	ids      Start  // without Restarted
	event    *sandbox.Event
	window   window.Window // on the files that it changes
	begun    bool          // the kernel has read the code
	out      Result
	excerpts [2]excerpt.Writer // of its output
	done     chan struct{}     // closed when out and err hold
	queued   bool              // it was on record before its turn came
	err      error
	gap      bool               // some of its output was lost, since it was not taken in time
	cut      [2]bool            // by stream: the agent has not kept all of the output
	killed   bool               // who ends it wants it ended as a process is
	held     *agent.Held        // a shell's command, until the shell is told of it; nil: it is not sent yet
	heldErr  error              // of sending it
	hosted   *hosted            // the process that a shell's command is; nil: its output comes from the kernel
	command  engine.ExecRequest // of a shell
	running  chan struct{}      // closed when it has begun, and another server would find it

	telling sync.Mutex   // held while started runs
	started func(string) // told its id then, before anything is given out; nil: nobody is
	told    bool         // running is closed

	mu      sync.Mutex
	sink    *Sink // nil: the caller takes nothing
	collect bool
	sinkErr error
	deaf    chan struct{}  // closed when the sink failed
	stop    bool           // the caller wants it to end
	ending  syscall.Signal // that is to end a shell's command; 0: none
	kernel  *codeKernel    // that it runs in
	kept    budget.Output  // of its output
	results keptResults
}

func newCell(u *engine.Use, cc *codeContext, r Request, sink *Sink) *cell {
	x := &cell{s: cc.in.s, u: u, cc: cc, r: r, sink: sink, collect: sink == nil, done: make(chan struct{}), running: make(chan struct{}), deaf: make(chan struct{})}
	x.kept = budget.NewOutput(r.Room, [2]int64{cmp.Or(r.MaxStdout, engine.DefaultOutput), cmp.Or(r.MaxStderr, engine.DefaultOutput)})
	x.results.room = r.Room
	rec := cc.record()
	x.ids = Start{CellID: sandbox.NewProcessID(), ContextID: cc.eventID(), Language: rec.Language}
	x.out.Start = x.ids
	return x
}

// wait waits for the cell on behalf of the caller.
func (x *cell) wait(ctx context.Context) (Result, error) {
	select {
	case <-x.done:
		return x.out, x.err
	case <-ctx.Done():
	case <-x.deaf:
	}
	x.mu.Lock()
	err := x.sinkErr
	x.sink, x.collect = nil, false // the caller's room is closed
	x.kept.Drop()
	x.mu.Unlock()
	if err == nil {
		err = ctx.Err()
	}
	if x.r.InterruptOnDisconnect && !fault.Is(context.Cause(ctx), fault.Unavailable) {
		x.interrupt(context.WithoutCancel(ctx))
	}
	return Result{Start: x.ids}, err
}

// interrupt ends the cell, as soon as it runs.
func (x *cell) interrupt(ctx context.Context) {
	x.mu.Lock()
	x.stop = true
	k := x.kernel
	x.mu.Unlock()
	if k == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, agent.SilenceBound)
	defer cancel()
	if err := k.session.Interrupt(ctx); err != nil && !fault.Is(err, fault.State) {
		x.s.log.Warn("a cell whose caller went away cannot be interrupted", "sandbox", x.u.Sandbox(), "cell", x.ids.CellID, "error", err)
	}
}

// send passes something to the sink, if there still is one.
func (x *cell) send(fn func(*Sink) error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.sink == nil {
		return
	}
	if err := fn(x.sink); err != nil {
		x.sink, x.sinkErr = nil, err
		close(x.deaf)
	}
}

// do is the cell's life.
func (x *cell) do(ctx context.Context) {
	defer close(x.done)
	k, restarted, err := x.cc.haveKernel(ctx, x.u, nil)
	if err != nil {
		x.refuse(ctx, err)
		return
	}
	x.out.Restarted = restarted
	defer x.dropHeld()
	x.hold(ctx, k)
	if err := x.intend(ctx, k); err != nil {
		x.refuse(ctx, err)
		return
	}
	x.s.checkpoint("code.intent")
	x.window = x.u.Track(ctx, x.r.TellArtifacts)
	res, err := x.run(ctx, k)
	if err != nil && ctx.Err() == nil && !x.begun && x.hosted == nil && k.session.Exit() != nil {
		// It had ended before it heard of the cell: the next one runs it.
		x.cc.setEnded(k, "its kernel ended: "+k.session.Exit().String())
		x.dropHeld()
		if k, restarted, err = x.cc.haveKernel(ctx, x.u, nil); err == nil {
			x.out.Restarted = restarted
			if err = x.intendAgain(ctx, k); err == nil {
				res, err = x.run(ctx, k)
			}
		}
	}
	if ctx.Err() != nil {
		x.leave(ctx)
		return
	}
	if k == nil || err != nil && !x.begun && k.session.Status() != kernel.Dead {
		x.notBegun(ctx, err)
		return
	}
	x.setResult(ctx, k, res, err)
	x.conclude(ctx)
}

// tellStarted tells who waits for the cell that it has begun. It may be called twice.
func (x *cell) tellStarted() {
	x.telling.Lock()
	defer x.telling.Unlock()
	if x.told {
		return
	}
	x.told = true
	close(x.running)
	if x.started != nil {
		x.started(x.ids.CellID)
	}
}

// leaveUntold has nobody be told any more when the cell begins.
func (x *cell) leaveUntold() {
	x.telling.Lock()
	defer x.telling.Unlock()
	x.started = nil
}

// refuse ends a cell that is on no record, or waited for its turn.
func (x *cell) refuse(ctx context.Context, err error) {
	if ctx.Err() != nil {
		err = engine.Stopping()
	}
	x.err, x.out = err, Result{}
	if x.queued && ctx.Err() == nil {
		x.never(ctx, err)
	}
	x.release()
	x.u.End()
}

// release releases the context. Where that was made for this cell, or was deleted meanwhile, its
// kernel is killed.
func (x *cell) release() {
	if x.cc.alone {
		x.cc.drop()
	}
	x.cc.dropUnsaved()
	x.cc.killOrphan()
	x.cc.release()
}

// leave leaves the cell to the next server.
func (x *cell) leave(ctx context.Context) {
	x.window.Close(ctx)
	x.leaveHosted()
	x.err = engine.Stopping()
	x.out = Result{Start: x.ids}
	x.cc.release()
	x.u.End()
}

// intend commits that the cell is about to run: its row, and what another server has to
// know to follow it.
func (x *cell) intend(ctx context.Context, k *codeKernel) error {
	if x.queued { // it is on record
		x.event.At = x.s.engine.Now() // when it began: what its shell started before that is no part of it
		err := x.intendAgain(ctx, k)
		if err != nil {
			x.cc.change(func(rec *sandbox.Context) { rec.RunningID = "" })
		}
		return err
	}
	ev, err := x.newEvent()
	if err != nil {
		return err
	}
	x.event = ev
	x.mark(k)
	ctx, cancel := detached(ctx)
	defer cancel()
	if err := x.u.Begin(ctx, ev, x.cc.put); err != nil {
		x.cc.change(func(rec *sandbox.Context) { rec.RunningID = "" })
		return err
	}
	x.cc.setSaved()
	return nil
}

// newEvent returns the row of the cell.
func (x *cell) newEvent() (*sandbox.Event, error) {
	rec := x.cc.record()
	kind := sandbox.EventCode
	if rec.Name != "" {
		kind = sandbox.EventExec // of a shell
	}
	ev, err := x.u.NewEvent(kind)
	if err != nil {
		return nil, err
	}
	ev.ProcessID, ev.Language, ev.ContextID = x.ids.CellID, x.ids.Language, x.ids.ContextID
	ev.User, ev.Cwd = rec.User, rec.Cwd
	ev.Name, ev.Labels = x.command.Mark.Name, x.command.Mark.Labels
	ev.Command = sandbox.Clip(x.r.Code, sandbox.MaxEventCommand-len("…"))
	return ev, nil
}

// mark notes in the record that the cell is the next one of the kernel.
func (x *cell) mark(k *codeKernel) {
	st := k.session.State()
	st.LastID++
	st.LastPing += pingsAhead
	st.Running = true
	x.cc.change(func(rec *sandbox.Context) {
		rec.RunningID, rec.UsedAt = x.ids.CellID, x.event.At
		rec.State = savedState{Kernel: st, Timeout: x.r.Timeout}.bytes()
	})
}

// pingsAhead is above what a session sends before a cell begins, so that an answer to it is
// not taken for that to the next server's.
const pingsAhead = 16

func (x *cell) intendAgain(ctx context.Context, k *codeKernel) error {
	x.mark(k)
	ctx, cancel := detached(ctx)
	defer cancel()
	return x.s.store.Update(ctx, x.cc.put)
}

// run has the kernel run the cell.
func (x *cell) run(ctx context.Context, k *codeKernel) (kernel.Outcome, error) {
	x.mu.Lock()
	x.kernel = k
	stop := x.stop
	x.mu.Unlock()
	if stop {
		return kernel.Outcome{End: kernel.Interrupted}, nil
	}
	x.send(func(s *Sink) error {
		if s.Started == nil {
			return nil
		}
		return s.Started(x.out.Start)
	})
	// What was set since the kernel began. If that cannot be opened now, the kernel has
	// nothing of it either.
	if secrets, err := x.u.Secrets(ctx); err == nil {
		k.session.Redact(secrets)
	}
	c := kernel.Cell{Code: x.r.Code, Env: x.r.Env, Argv: x.r.Argv, Stdin: x.stdin, Timeout: x.r.Timeout, Slept: x.u.Slept, Deliver: x.deliverTo(k)}
	gaps := k.process.Gaps()
	res, err := k.session.Execute(ctx, c, x.handler(ctx))
	res, err = x.endAtTimeout(ctx, k, res, err)
	x.gap = k.process.Gaps() > gaps
	return res, err
}

func (x *cell) handler(ctx context.Context) kernel.Handler {
	return kernel.Handler{
		Started: func(count int) {
			x.begun, x.out.Count = true, count
			x.tellStarted()
			x.mu.Lock()
			stop := x.stop
			x.mu.Unlock()
			if stop { // what came between run's look and the begin was too early for the session
				x.s.engine.Go(x.interrupt)
			}
		},
		Stdout: func(b []byte) { x.output(ctx, 0, b) },
		Stderr: func(b []byte) { x.output(ctx, 1, b) },
		Result: func(r kernel.Result) {
			if x.collecting() {
				x.results.add(ctx, r)
			}
			x.send(func(s *Sink) error {
				if s.Result == nil {
					return nil
				}
				return s.Result(r)
			})
		},
	}
}

func (x *cell) output(ctx context.Context, stream int, b []byte) {
	if stream == 0 {
		x.out.StdoutBytes += int64(len(b))
	} else {
		x.out.StderrBytes += int64(len(b))
	}
	_, _ = x.excerpts[stream].Write(b)
	if x.collecting() {
		x.kept.Reserve(ctx, stream, len(b))
	}
	x.mu.Lock()
	if x.collect {
		x.kept.Write(stream, b)
	}
	x.mu.Unlock()
	x.send(func(s *Sink) error {
		take := s.Stdout
		if stream == 1 {
			take = s.Stderr
		}
		if take == nil {
			return nil
		}
		return take(b)
	})
}

// setResult makes the result of how the kernel took it.
func (x *cell) setResult(ctx context.Context, k *codeKernel, res kernel.Outcome, err error) {
	x.mu.Lock()
	x.kernel = nil
	x.mu.Unlock()
	out := &x.out
	out.Results = x.results.list
	out.Duration = res.Duration
	if out.Duration == 0 {
		out.Duration = max(x.s.engine.Now().Sub(x.event.At), 0)
	}
	out.Dropped, out.Error, out.ExitCode = res.Dropped+x.results.dropped, res.Error, res.ExitCode
	switch {
	case fault.Is(err, fault.Timeout):
		out.Status, out.Dead = TimedOut, true
		out.ExitCode, out.Signal, out.Cause = exitKilled, "SIGKILL", sandbox.CauseTimeout
		out.CauseDetail = "it did not heed the interrupt, and its kernel was killed"
	case err != nil:
		out.Status, out.Dead = Ended, true
		out.ExitCode, out.Signal, out.Cause, out.CauseDetail = exitKilled, "SIGKILL", sandbox.CauseKilled, reason(err)
	case res.End == kernel.Ended:
		out.Status, out.Dead = Ended, true
		out.ExitCode, out.Signal, out.Cause = res.Exit.Code, res.Exit.Signal, sandbox.Cause(res.Exit.Cause)
		out.CauseDetail = "its kernel ended: " + res.Exit.String()
	case res.TimedOut:
		out.Status, out.Cause, out.CauseDetail = TimedOut, sandbox.CauseTimeout, "it was interrupted after "+x.r.Timeout.String()
		out.ExitCode = exitInterrupted
	case res.End == kernel.Interrupted:
		out.Status, out.ExitCode = Interrupted, exitInterrupted
	case res.End == kernel.Failed:
		out.Status, out.ExitCode = Error, 1
	default:
		out.Status = OK
	}
	x.endedBy()
	x.mu.Lock()
	if x.killed && out.Cause == sandbox.CauseNone && out.ExitCode != 0 {
		out.Cause, out.CauseDetail = sandbox.CauseKilled, "killed on request"
	}
	x.mu.Unlock()
	x.endHosted(ctx)
	x.mu.Lock()
	data, cut := x.kept.Kept(), x.kept.Truncated()
	out.Stdout, out.Stderr = data[0], data[1]
	out.StdoutTruncated, out.StderrTruncated = x.cut[0] || cut[0] || x.gap, x.cut[1] || cut[1] || x.gap
	x.mu.Unlock()
	if out.Dead {
		x.cc.setEnded(k, orText(out.CauseDetail, "its kernel ended"))
		if err := k.process.Kill(ctx); err != nil && k.process.Up() {
			x.s.log.Error("a kernel of no more use cannot be killed; the next start does it", "sandbox", x.u.Sandbox(), "process", k.process.ID(), "error", err)
		}
	}
	st := k.session.State()
	x.cc.change(func(rec *sandbox.Context) {
		rec.RunningID, rec.UsedAt = "", x.s.engine.Now()
		rec.Cells = max(rec.Cells, int64(out.Count))
		rec.State = savedState{Kernel: st}.bytes()
	})
}

// Exit codes of cells that a signal ended, as a shell has them.
const (
	exitInterrupted = 128 + 2
	exitKilled      = 128 + 9
)

// conclude releases the context, and has the result committed behind the caller's back, as a
// command's is.
func (x *cell) conclude(ctx context.Context) {
	x.s.checkpoint("code.ended")
	c := x.window.Close(ctx)
	out := &x.out
	out.Changes, out.ChangesTotal, out.ChangesComplete, out.NoArtifacts = c.Files, c.Total, c.Complete, c.NoArtifacts
	out.SnapshotID = x.u.KeepChanges(ctx, x.event, c.Total, c.Complete)
	ev := x.event
	ev.Done, ev.OK = true, out.ExitCode == 0
	ev.ExitCode, ev.Signal, ev.Cause, ev.Duration = out.ExitCode, out.Signal, out.Cause, out.Duration
	ev.Detail = sandbox.Clip(outcomeText(out), maxDetail)
	ev.StdoutBytes, ev.StderrBytes = out.StdoutBytes, out.StderrBytes
	ev.StdoutTruncated, ev.StderrTruncated = x.cut[0], x.cut[1]
	ev.Stdout, ev.Stderr = x.excerpts[0].Excerpt(), x.excerpts[1].Excerpt()
	ev.Changes, ev.ChangesTotal = slices.Clone(c.Recorded()), c.Total
	if ev.Type == sandbox.EventCode {
		x.s.metrics.cells.WithLabelValues(out.Language, string(out.Status)).Inc()
	}
	x.u.Conclude(ev, func(ctx context.Context) {
		x.record(ctx, ev.Duration)
		x.s.checkpoint("code.outcome")
	})
	x.release()
}

// record commits the outcome: the cell's row, its context, and the sandbox's counters.
func (x *cell) record(ctx context.Context, took time.Duration) {
	if err := x.u.Record(ctx, x.event, took, x.cc.put); err != nil {
		x.s.log.Error("the end of a cell cannot be recorded; the next start does it", "sandbox", x.u.Sandbox(), "cell", x.event.ProcessID, "error", err)
	}
}

// notBegun completes the row of a cell that never ran, for err.
func (x *cell) notBegun(ctx context.Context, err error) {
	x.window.Close(ctx)
	x.dropHosted(ctx)
	x.mu.Lock()
	x.kernel = nil
	x.mu.Unlock()
	x.cc.change(func(rec *sandbox.Context) { rec.RunningID = "" })
	process.NotRun(x.event, err, x.s.engine.Now())
	x.record(ctx, 0)
	x.err, x.out = err, Result{}
	x.release()
	x.u.End()
}
