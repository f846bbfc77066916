// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"sandpit.dev/agent"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/kernel"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// cell is one run of code. A goroutine of the engine sees it to its end, whoever
// else goes away. It has its context's turn, and is a use of the sandbox.
type cell struct {
	u         *use
	cc        *codeContext
	r         CodeRequest
	stdin     []byte    // of a shell's command
	ids       CodeStart // without Restarted
	event     *sandbox.Event
	window    runtime.Window // nil: nobody tells which files change
	artifacts runtime.Window // the same of the artifacts; nil as well: nobody asked
	begun     bool           // the kernel has read the code
	out       CodeResult
	done      chan struct{} // closed when out and err hold
	err       error
	gap       bool // some of its output was lost, since nobody took it in time

	mu      sync.Mutex
	sink    *CodeSink // nil: nobody
	collect bool
	sinkErr error
	deaf    chan struct{} // closed when the sink failed
	stop    bool          // the caller wants it to end
	kernel  *codeKernel   // that it runs in
	kept    budget.Output // of its output
	results keptResults
}

func newCell(u *use, cc *codeContext, r CodeRequest, sink *CodeSink) *cell {
	x := &cell{u: u, cc: cc, r: r, sink: sink, collect: sink == nil, done: make(chan struct{}), deaf: make(chan struct{})}
	x.kept = budget.NewOutput(r.Room, [2]int64{orDefault(r.MaxStdout, DefaultOutput), orDefault(r.MaxStderr, DefaultOutput)})
	x.results.room = r.Room
	rec := cc.record()
	x.ids = CodeStart{CellID: sandbox.NewProcessID(), ContextID: cc.eventID(), Language: rec.Language}
	x.out.CodeStart = x.ids
	return x
}

// wait waits for the cell on behalf of the caller.
func (x *cell) wait(ctx context.Context) (CodeResult, error) {
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
	return CodeResult{CodeStart: x.ids}, err
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
		x.u.e.log.Warn("a cell whose caller went away cannot be interrupted", "sandbox", x.u.b.id, "cell", x.ids.CellID, "error", err)
	}
}

// tell gives the sink something, if there still is one.
func (x *cell) tell(fn func(*CodeSink) error) {
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
	e := x.u.e
	defer close(x.done)
	k, restarted, err := e.haveKernel(ctx, x.u, x.cc)
	if err != nil {
		x.refuse(ctx, err)
		return
	}
	x.out.Restarted = restarted
	if err := x.intend(ctx, k); err != nil {
		x.refuse(ctx, err)
		return
	}
	e.checkpoint("code.intent")
	x.track(ctx)
	res, err := x.run(ctx, k)
	if err != nil && ctx.Err() == nil && !x.begun && k.session.Exit() != nil {
		// It had ended before it heard of the cell: the next one runs it.
		x.cc.over(k, "its kernel ended: "+k.session.Exit().String())
		if k, restarted, err = e.haveKernel(ctx, x.u, x.cc); err == nil {
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
	x.settle(ctx, k, res, err)
	x.conclude(ctx)
}

// refuse ends a cell that is on no record.
func (x *cell) refuse(ctx context.Context, err error) {
	if ctx.Err() != nil {
		err = shuttingDown()
	}
	x.err, x.out = err, CodeResult{}
	x.release()
	x.u.end()
}

// release gives the context up. The kernel of one that is no more, for it was made for this
// cell or was deleted meanwhile, is ended.
func (x *cell) release() {
	if x.cc.alone {
		x.cc.drop()
	}
	x.cc.unsaved()
	x.u.e.endOrphan(x.u.b, x.cc)
	x.cc.turn.give()
}

// leave leaves the cell to the next server.
func (x *cell) leave(ctx context.Context) {
	x.closeWindow(ctx)
	x.err = shuttingDown()
	x.out = CodeResult{CodeStart: x.ids}
	x.cc.turn.give()
	x.u.end()
}

// intend commits that the cell is about to run: its row, and what another server has to
// know to follow it.
func (x *cell) intend(ctx context.Context, k *codeKernel) error {
	s := x.u.b.record.Load()
	if s == nil {
		return noSandbox(string(x.u.b.id))
	}
	rec := x.cc.record()
	ev := x.u.who.event(sandbox.EventCode, s, x.u.e.now())
	ev.Done, ev.OK = false, false
	ev.ProcessID, ev.Language, ev.ContextID = x.ids.CellID, x.ids.Language, x.ids.ContextID
	ev.User, ev.Cwd = rec.User, rec.Cwd
	if rec.Name != "" {
		ev.Type = sandbox.EventExec // of a shell
	}
	ev.Command = sandbox.Clip(x.r.Code, sandbox.MaxEventCommand-len("…"))
	x.event = ev
	x.mark(k)
	ctx, cancel := aside(ctx)
	defer cancel()
	err := x.u.e.store.Update(ctx, func(tx store.Tx) error {
		if err := tx.Events().Append(ev); err != nil {
			return err
		}
		return x.cc.put(tx)
	})
	if err != nil {
		x.cc.change(func(rec *sandbox.Context) { rec.RunningID = "" })
		return err
	}
	x.cc.wasPut()
	x.u.e.metrics.happened([]*sandbox.Event{ev})
	return nil
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
	ctx, cancel := aside(ctx)
	defer cancel()
	return x.u.e.store.Update(ctx, x.cc.put)
}

func (x *cell) track(ctx context.Context) {
	t, ok := x.u.l.inst.(runtime.Tracker)
	if !ok {
		return
	}
	if x.r.TellArtifacts {
		x.artifacts = x.u.trackArtifacts(ctx)
	}
	var err error
	if x.window, err = t.Track(ctx, sandbox.Workspace); err != nil {
		x.u.e.log.Warn("which files a cell changes cannot be told", "sandbox", x.u.b.id, "error", err)
	}
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
	x.tell(func(s *CodeSink) error {
		if s.Started == nil {
			return nil
		}
		return s.Started(x.out.CodeStart)
	})
	// What was set since the kernel began. If that cannot be opened now, the kernel has
	// nothing of it either.
	if set, err := x.u.e.secrets.Of(ctx, x.u.b.project, x.u.b.id); err == nil {
		k.session.Redact(set.Values)
	}
	c := kernel.Cell{Code: x.r.Code, Env: x.r.Env, Stdin: x.stdin, Timeout: x.r.Timeout, Slept: x.u.l.nap.total}
	gaps := k.carrier.gaps
	res, err := k.session.Execute(ctx, c, x.handler(ctx))
	res, err = x.spare(ctx, k, res, err)
	x.gap = k.carrier.gaps > gaps
	return res, err
}

func (x *cell) handler(ctx context.Context) kernel.Handler {
	return kernel.Handler{
		Started: func(count int) {
			x.begun, x.out.Count = true, count
			x.mu.Lock()
			stop := x.stop
			x.mu.Unlock()
			if stop { // what came between run's look and the begin was too early for the session
				x.u.e.group.spawn(func(ctx context.Context) { x.interrupt(ctx) })
			}
		},
		Stdout: func(b []byte) { x.output(ctx, 0, b) },
		Stderr: func(b []byte) { x.output(ctx, 1, b) },
		Result: func(r kernel.Result) {
			if x.collecting() {
				x.results.add(ctx, r)
			}
			x.tell(func(s *CodeSink) error {
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
	if x.collecting() {
		x.kept.Reserve(ctx, stream, len(b))
	}
	x.mu.Lock()
	if x.collect {
		x.kept.Write(stream, b)
	}
	x.mu.Unlock()
	x.tell(func(s *CodeSink) error {
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

// settle makes the result of how the kernel took it.
func (x *cell) settle(ctx context.Context, k *codeKernel, res kernel.Outcome, err error) {
	x.mu.Lock()
	x.kernel = nil
	x.mu.Unlock()
	out := &x.out
	x.mu.Lock()
	data, cut := x.kept.Kept(), x.kept.Truncated()
	out.Stdout, out.Stderr = data[0], data[1]
	out.StdoutTruncated, out.StderrTruncated = cut[0] || x.gap, cut[1] || x.gap
	x.mu.Unlock()
	out.Results = x.results.list
	out.Duration = res.Duration
	if out.Duration == 0 {
		out.Duration = max(x.u.e.now().Sub(x.event.At), 0)
	}
	out.Dropped, out.Error, out.ExitCode = res.Dropped+x.results.dropped, res.Error, res.ExitCode
	switch {
	case fault.Is(err, fault.Timeout):
		out.Status, out.Dead = CodeTimedOut, true
		out.ExitCode, out.Signal, out.Cause = exitKilled, "SIGKILL", sandbox.CauseTimeout
		out.CauseDetail = "it did not heed the interrupt, and its kernel was killed"
	case err != nil:
		out.Status, out.Dead = CodeEnded, true
		out.ExitCode, out.Signal, out.Cause, out.CauseDetail = exitKilled, "SIGKILL", sandbox.CauseKilled, reason(err)
	case res.End == kernel.Ended:
		out.Status, out.Dead = CodeEnded, true
		out.ExitCode, out.Signal, out.Cause = res.Exit.Code, res.Exit.Signal, sandbox.Cause(res.Exit.Cause)
		out.CauseDetail = "its kernel ended: " + res.Exit.String()
	case res.TimedOut:
		out.Status, out.Cause, out.CauseDetail = CodeTimedOut, sandbox.CauseTimeout, "it was interrupted after "+x.r.Timeout.String()
		out.ExitCode = exitInterrupted
	case res.End == kernel.Interrupted:
		out.Status, out.ExitCode = CodeInterrupted, exitInterrupted
	case res.End == kernel.Failed:
		out.Status, out.ExitCode = CodeError, 1
	default:
		out.Status = CodeOK
	}
	if out.Dead {
		x.cc.over(k, orText(out.CauseDetail, "its kernel ended"))
		if err := x.u.e.killKernel(ctx, k.l, k.process); err != nil && x.u.b.standing() == k.l {
			x.u.e.log.Error("a kernel of no more use cannot be killed; the next start does it", "sandbox", x.u.b.id, "process", k.process, "error", err)
		}
	}
	st := k.session.State()
	x.cc.change(func(rec *sandbox.Context) {
		rec.RunningID, rec.UsedAt = "", x.u.e.now()
		rec.Cells = max(rec.Cells, int64(out.Count))
		rec.State = savedState{Kernel: st}.bytes()
	})
}

// exitInterrupted is the exit code of a cell that an interrupt ended, as a shell has it.
const exitInterrupted = 128 + 2

func (x *cell) closeWindow(ctx context.Context) {
	ctx, cancel := aside(ctx)
	defer cancel()
	x.out.NoArtifacts = leftAlone(ctx, x.artifacts)
	if x.window == nil {
		return
	}
	changes, err := x.window.Close(ctx)
	if err != nil {
		x.u.e.log.Warn("which files a cell changed cannot be told", "sandbox", x.u.b.id, "error", err)
		return
	}
	x.out.Changes, x.out.ChangesTotal, x.out.ChangesComplete = ofBytes(secrets.Changes(x.u.labels(), changes.Files), answeredChanges), changes.Total, changes.Complete
}

// conclude gives the context on, and has the result committed behind the caller's back, as a
// command's is.
func (x *cell) conclude(ctx context.Context) {
	e := x.u.e
	e.checkpoint("code.ended")
	x.closeWindow(ctx)
	x.out.SnapshotID = x.u.keepChanges(ctx, x.event, x.out.ChangesTotal, x.out.ChangesComplete)
	if x.event.Type == sandbox.EventExec {
		e.metrics.ran(x.event, &agent.Result{ExitCode: x.out.ExitCode, Cause: x.out.Cause, Duration: x.out.Duration})
	} else {
		e.metrics.ranCode(&x.out)
	}
	out := x.out
	end := e.outcomes.begin(x.u.b)
	x.release()
	e.group.spawn(func(ctx context.Context) {
		defer x.u.end()
		defer end()
		x.record(ctx, &out)
		e.checkpoint("code.outcome")
	})
}

func (cc *codeContext) liveKernel() *codeKernel {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	return cc.kernel
}

// record commits the result: the cell's row, its context, and the sandbox's counters.
func (x *cell) record(ctx context.Context, r *CodeResult) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitBound)
	defer cancel()
	ev := x.event
	ev.Done, ev.OK = true, r.ExitCode == 0
	ev.ExitCode, ev.Signal, ev.Cause, ev.Duration = r.ExitCode, r.Signal, r.Cause, r.Duration
	ev.Detail = sandbox.Clip(outcomeText(r), maxDetail)
	ev.StdoutBytes, ev.StderrBytes = r.StdoutBytes, r.StderrBytes
	ev.Changes, ev.ChangesTotal = slices.Clone(recorded(r.Changes)), r.ChangesTotal
	if err := x.finish(ctx, r.Duration); err != nil {
		x.u.e.log.Error("the end of a cell cannot be recorded; the next start does it", "sandbox", x.u.b.id, "cell", ev.ProcessID, "error", err)
	}
}

// outcomeText is one line for people.
func outcomeText(r *CodeResult) string {
	switch {
	case r.Error != nil:
		first, _, _ := strings.Cut(r.Error.Value, "\n")
		return strings.Map(func(c rune) rune {
			if !unicode.IsPrint(c) {
				return ' '
			}
			return c
		}, strings.TrimSuffix(r.Error.Name+": "+first, ": "))
	case r.CauseDetail != "":
		return r.CauseDetail
	case r.Status == CodeInterrupted:
		return "interrupted"
	}
	return ""
}

func (x *cell) finish(ctx context.Context, took time.Duration) error {
	err := x.u.e.tally(ctx, x.u.b, func(s *sandbox.Sandbox) {
		s.ExecCount++
		s.ExecTime += took
	}, func(tx store.Tx) error {
		if err := tx.Events().Finish(x.event); err != nil {
			return err
		}
		return x.cc.put(tx)
	})
	if fault.Is(err, fault.Conflict) && x.u.b.record.Load() == nil {
		return nil // its sandbox was deleted, and the row completed with it
	}
	return err
}

// notBegun completes the row of a cell that never ran, for err.
func (x *cell) notBegun(ctx context.Context, err error) {
	x.closeWindow(ctx)
	x.mu.Lock()
	x.kernel = nil
	x.mu.Unlock()
	x.cc.change(func(rec *sandbox.Context) { rec.RunningID = "" })
	cutOff(x.event, sandbox.CauseNone, notRun+reason(err), x.u.e.now())
	x.event.ExitCode, x.event.Signal = exitNotStarted, ""
	cctx, cancel := aside(ctx)
	defer cancel()
	if dbErr := x.finish(cctx, 0); dbErr != nil {
		x.u.e.log.Error("the end of a cell cannot be recorded; the next start does it", "sandbox", x.u.b.id, "cell", x.event.ProcessID, "error", dbErr)
	}
	x.err, x.out = err, CodeResult{}
	x.release()
	x.u.end()
}
