// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Output is written to a run's events when there is a chunk of it, or some of it has
// waited for a moment.
const (
	runChunk  = 32 << 10
	runMoment = 50 * time.Millisecond
)

// follow copies what a command gives out into the run's events until it ends, and
// gives its result. It begins after the last frame that is there, so that nothing is
// missing or there twice, whoever followed it before. The error is ctx's.
func (l *liveRun) follow(ctx context.Context, i int) (agent.Result, error) {
	for {
		res, ended, err := l.followOnce(ctx, i)
		if ended || err != nil {
			return res, err
		}
		t := time.NewTimer(lostPause)
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// outcome gives the result of a command that the run has let go of: of one that was
// cancelled after killing it.
func (l *liveRun) outcome(ctx context.Context, i int) (agent.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, killBound)
	defer cancel()
	if r := l.record(); r.Canceled {
		err := l.e.KillProcess(ctx, l.caller, string(r.Sandbox), r.Commands[i].ProcessID)
		if err != nil && !fault.Is(err, fault.NotFound) && !l.e.ending() {
			l.e.log.Warn("the command of a cancelled run was not killed", "run", l.id, "error", err)
		}
	}
	return l.follow(ctx, i)
}

// followOnce follows a process as long as that works. Where it does not, what is on
// record tells whether the process has ended.
func (l *liveRun) followOnce(ctx context.Context, i int) (res agent.Result, ended bool, err error) {
	r := l.record()
	c := r.Commands[i]
	g, err := l.e.Follow(ctx, l.caller, string(r.Sandbox), c.ProcessID, FollowRequest{Cursor: c.Frame, own: true})
	if err == nil {
		end, err := l.drain(ctx, i, g)
		if err == nil && end.Ended {
			return end.Result, true, nil
		}
	}
	if ctx.Err() != nil {
		return res, false, ctx.Err()
	}
	if l.e.ending() {
		return res, false, shuttingDown()
	}
	rec, err := l.e.Process(ctx, l.caller, string(r.Sandbox), c.ProcessID)
	switch {
	case err == nil && rec.Result != nil:
		return l.shortened(i, *rec.Result), true, nil
	case err == nil: // it is frozen with its sandbox, or about to be looked after
		return res, false, nil
	case !fault.Is(err, fault.NotFound):
		return res, false, ctx.Err()
	}
	row, err := l.row(ctx, c.ProcessID)
	if err != nil {
		return res, false, ctx.Err()
	}
	if row == nil || !row.Done {
		return l.shortened(i, agent.Result{ExitCode: exitKilled, Signal: "SIGKILL", Cause: sandbox.CauseHost}), true, nil
	}
	return l.shortened(i, *recordOf(row).Result), true, nil
}

// shortened marks the streams of a result that the run does not have whole, for their
// log went before it was read.
func (l *liveRun) shortened(i int, res agent.Result) agent.Result {
	c := l.record().Commands[i]
	res.StdoutTruncated = res.StdoutTruncated || res.StdoutBytes > c.StdoutBytes
	res.StderrTruncated = res.StderrTruncated || res.StderrBytes > c.StderrBytes
	return res
}

// drain follows g to its end, and has written all of it to the run's events then.
func (l *liveRun) drain(ctx context.Context, i int, g *Following) (FollowEnd, error) {
	defer g.Close()
	w := &runOutput{l: l, command: i, wake: make(chan struct{}, 1)}
	stop := make(chan struct{})
	var flusher sync.WaitGroup
	flusher.Go(func() { w.flushNowAndThen(ctx, stop) })
	end, err := g.Run(ctx, FollowSink{
		Frame: func(f agent.Frame) error { return w.take(ctx, f) },
		Gap:   func(gap Gap) error { return w.gap(ctx, gap) },
	})
	close(stop)
	flusher.Wait()
	// Also when ctx is over: what was read need not be read again.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitBound)
	defer cancel()
	if ferr := w.flush(last); err == nil {
		err = ferr
	}
	return end, err
}

// runOutput is what a command gave out and is not in the run's events yet.
type runOutput struct {
	l       *liveRun
	command int
	wake    chan struct{} // something waits

	flushing sync.Mutex // one flush at a time, so that they are in order

	mu     sync.Mutex
	events []*sandbox.RunEvent
	bytes  int
	frame  int64 // the last one in events
}

// take adds a frame. A reader that is quicker than the store waits for it.
func (w *runOutput) take(ctx context.Context, f agent.Frame) error {
	kind := sandbox.RunCommandStdout
	if f.Stream == agent.Stderr {
		kind = sandbox.RunCommandStderr
	}
	w.mu.Lock()
	if n := len(w.events); n > 0 && w.events[n-1].Type == kind && len(w.events[n-1].Data)+len(f.Data) <= runChunk {
		w.events[n-1].Data = append(w.events[n-1].Data, f.Data...)
	} else {
		ev := w.l.e.runEvent(kind, w.command)
		ev.Data = f.Data
		w.events = append(w.events, ev)
	}
	w.bytes, w.frame = w.bytes+len(f.Data), f.Seq
	full := w.bytes >= runChunk
	w.mu.Unlock()
	if full {
		return w.flush(ctx)
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}

// gap notes that a stream has more than is kept.
func (w *runOutput) gap(_ context.Context, g Gap) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range []sandbox.RunEventType{sandbox.RunCommandStdout, sandbox.RunCommandStderr} {
		if g.Stream == 0 || (g.Stream == agent.Stderr) == (kind == sandbox.RunCommandStderr) {
			ev := w.l.e.runEvent(kind, w.command)
			ev.Truncated = true
			w.events = append(w.events, ev)
		}
	}
	return nil
}

// flushNowAndThen writes what has waited for a moment, until stop.
func (w *runOutput) flushNowAndThen(ctx context.Context, stop <-chan struct{}) {
	for {
		select {
		case <-w.wake:
		case <-stop:
			return
		}
		t := time.NewTimer(runMoment)
		select {
		case <-t.C:
		case <-stop:
			t.Stop()
			return
		}
		if w.flush(ctx) != nil {
			return // the last flush does it
		}
	}
}

func (w *runOutput) flush(ctx context.Context) error {
	w.flushing.Lock()
	defer w.flushing.Unlock()
	w.mu.Lock()
	events, frame := w.events, w.frame
	w.events, w.bytes = nil, 0
	w.mu.Unlock()
	if len(events) == 0 {
		return nil
	}
	err := w.l.commit(ctx, runChange{
		change: func(r *sandbox.Run) {
			c := &r.Commands[w.command]
			c.Frame = max(c.Frame, frame)
			for _, ev := range events {
				r.OutputBytes += int64(len(ev.Data))
				if ev.Type == sandbox.RunCommandStderr {
					c.StderrBytes += int64(len(ev.Data))
				} else {
					c.StdoutBytes += int64(len(ev.Data))
				}
			}
		},
		commands: []int{w.command}, events: events,
	})
	if err != nil { // in front of what came meanwhile
		w.mu.Lock()
		w.events = append(events, w.events...)
		w.mu.Unlock()
	}
	return err
}
