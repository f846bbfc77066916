// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"sync"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// output is what a command gave out that is not in the run's events yet.
type output struct {
	w       *worker
	command int
	wake    chan struct{} // something waits

	flushing sync.Mutex // one flush at a time, so that they are in order

	mu     sync.Mutex
	events []*sandbox.RunEvent
	bytes  int
	frame  int64 // the last one in events
}

// add adds a frame. A reader that is quicker than the store waits for it.
func (o *output) add(ctx context.Context, f sandbox.Frame) error {
	kind := sandbox.RunCommandStdout
	if f.Stream == sandbox.Stderr {
		kind = sandbox.RunCommandStderr
	}
	o.mu.Lock()
	if n := len(o.events); n > 0 && o.events[n-1].Type == kind && len(o.events[n-1].Data)+len(f.Data) <= outputChunk {
		o.events[n-1].Data = append(o.events[n-1].Data, f.Data...)
	} else {
		ev := o.w.r.event(kind, o.command)
		ev.Data = f.Data
		o.events = append(o.events, ev)
	}
	o.bytes, o.frame = o.bytes+len(f.Data), f.Seq
	full := o.bytes >= outputChunk
	o.mu.Unlock()
	if full {
		return o.flush(ctx)
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return nil
}

// gap records that a stream has more than is kept.
func (o *output) gap(g engine.Gap) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, kind := range []sandbox.RunEventType{sandbox.RunCommandStdout, sandbox.RunCommandStderr} {
		if g.Stream == 0 || (g.Stream == sandbox.Stderr) == (kind == sandbox.RunCommandStderr) {
			ev := o.w.r.event(kind, o.command)
			ev.Truncated = true
			o.events = append(o.events, ev)
		}
	}
	return nil
}

// flushUntil writes what has waited for a moment, until stop.
func (o *output) flushUntil(ctx context.Context, stop <-chan struct{}) {
	for {
		select {
		case <-o.wake:
		case <-stop:
			return
		}
		t := time.NewTimer(outputMoment)
		select {
		case <-t.C:
		case <-stop:
			t.Stop()
			return
		}
		if o.flush(ctx) != nil {
			return // the last flush does it
		}
	}
}

func (o *output) flush(ctx context.Context) error {
	o.flushing.Lock()
	defer o.flushing.Unlock()
	o.mu.Lock()
	events, frame := o.events, o.frame
	o.events, o.bytes = nil, 0
	o.mu.Unlock()
	if len(events) == 0 {
		return nil
	}
	err := o.w.commit(ctx, change{
		run: func(run *sandbox.Run) {
			c := &run.Commands[o.command]
			c.Frame = max(c.Frame, frame)
			for _, ev := range events {
				run.OutputBytes += int64(len(ev.Data))
				if ev.Type == sandbox.RunCommandStderr {
					c.StderrBytes += int64(len(ev.Data))
				} else {
					c.StdoutBytes += int64(len(ev.Data))
				}
			}
		},
		commands: []int{o.command}, events: events,
	})
	if err != nil { // in front of what came meanwhile
		o.mu.Lock()
		o.events = append(events, o.events...)
		o.mu.Unlock()
	}
	return err
}
