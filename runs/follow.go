// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"sync"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Output is written to a run's events when there is a chunk of it, or some of it has
// waited for a moment.
const (
	outputChunk  = 32 << 10
	outputMoment = 50 * time.Millisecond
)

const (
	// lostPause is the time between two attempts to follow a command.
	lostPause = 250 * time.Millisecond
	// killBound bounds how long a command may take to end that is killed.
	killBound = 30 * time.Second
	// flushBound bounds the last write of what was read.
	flushBound = 30 * time.Second
)

// follow copies what a command gives out into the run's events until it ends, and
// returns its result. It begins after the last frame that is there, so that nothing is
// missing or there twice, whoever followed it before. The error is ctx's.
func (w *worker) follow(ctx context.Context, i int) (sandbox.Result, error) {
	for {
		res, ended, err := w.followOnce(ctx, i)
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

// outcome returns the result of a command that the run does not follow any more: of one that was
// cancelled after killing it.
func (w *worker) outcome(life context.Context, i int) (sandbox.Result, error) {
	ctx, cancel := context.WithTimeout(life, killBound)
	defer cancel()
	if run := w.record(); run.Canceled {
		err := w.r.engine.KillProcess(ctx, w.caller, string(run.Sandbox), run.Commands[i].ProcessID)
		if err != nil && !fault.Is(err, fault.NotFound) && life.Err() == nil {
			w.r.o.Logger.Warn("the command of a cancelled run was not killed", "run", w.id, "error", err)
		}
	}
	return w.follow(ctx, i)
}

// followOnce follows a process as long as that works. Where it does not, what is on
// record tells whether the process has ended.
func (w *worker) followOnce(ctx context.Context, i int) (res sandbox.Result, ended bool, err error) {
	run := w.record()
	c := run.Commands[i]
	f, err := w.r.engine.Follow(ctx, w.caller, string(run.Sandbox), c.ProcessID, engine.FollowRequest{Cursor: c.Frame, Own: true})
	if err == nil {
		end, err := w.drain(ctx, i, f)
		if err == nil && end.Ended {
			return end.Result, true, nil
		}
	}
	if ctx.Err() != nil {
		return res, false, ctx.Err()
	}
	rec, err := w.r.engine.Process(ctx, w.caller, string(run.Sandbox), c.ProcessID)
	switch {
	case err == nil && rec.Result != nil:
		return w.shortened(i, *rec.Result), true, nil
	case err == nil: // it is frozen with its sandbox, or about to be looked after
		return res, false, nil
	case !fault.Is(err, fault.NotFound):
		return res, false, ctx.Err()
	}
	row, err := w.row(ctx, c.ProcessID)
	if err != nil {
		return res, false, ctx.Err()
	}
	if row == nil || !row.Done {
		return w.shortened(i, sandbox.Result{ExitCode: exitKilled, Signal: "SIGKILL", Cause: sandbox.CauseHost}), true, nil
	}
	return w.shortened(i, *process.Record(row).Result), true, nil
}

// shortened marks the streams of a result of which the run has only a part, for their
// log went before it was read.
func (w *worker) shortened(i int, res sandbox.Result) sandbox.Result {
	c := w.record().Commands[i]
	res.StdoutTruncated = res.StdoutTruncated || res.StdoutBytes > c.StdoutBytes
	res.StderrTruncated = res.StderrTruncated || res.StderrBytes > c.StderrBytes
	return res
}

// drain follows f to its end, and has written all of it to the run's events then.
func (w *worker) drain(ctx context.Context, i int, f *engine.Following) (engine.FollowEnd, error) {
	defer f.Close()
	o := &output{w: w, command: i, wake: make(chan struct{}, 1)}
	stop := make(chan struct{})
	var flusher sync.WaitGroup
	flusher.Go(func() { o.flushUntil(ctx, stop) })
	end, err := f.Run(ctx, engine.FollowSink{
		Frame: func(f sandbox.Frame) error { return o.add(ctx, f) },
		Gap:   o.gap,
	})
	close(stop)
	flusher.Wait()
	// Also when ctx is over: what was read need not be read again.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushBound)
	defer cancel()
	if ferr := o.flush(last); err == nil {
		err = ferr
	}
	return end, err
}
