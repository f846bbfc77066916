// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Events returns the events of a run that come after one, at most so many as fit in
// an answer, and the run as it was when they were read. Where there are none yet it
// waits for them, at most as long as wait: then it returns none. A run that has ended
// and none means that there will be no more. after is 0, or the Seq of an event that
// the run has had.
func (r *Runner) Events(ctx context.Context, c access.Caller, id string, after int64, wait time.Duration) (*sandbox.Run, []*sandbox.RunEvent, error) {
	bound, leave, err := r.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	if !sandbox.ValidRunID(id) {
		return nil, nil, noRun(id)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		var changed <-chan struct{}
		if w := r.worker(id); w != nil {
			changed = w.changes() // before the look, so that nothing is missed
		}
		run, events, err := r.readEvents(bound, c, id, after)
		if err != nil && bound.Err() != nil {
			err = interrupted(ctx, bound)
		}
		if err != nil || len(events) > 0 || run.State.Ended() || wait <= 0 {
			return run, events, err
		}
		select {
		case <-changed:
		case <-timer.C:
			return run, nil, nil
		case <-bound.Done():
			return nil, nil, interrupted(ctx, bound)
		}
	}
}

// eventPage is how many events are read at a time: of output each has outputChunk bytes at most.
const eventPage = 64

func (r *Runner) readEvents(ctx context.Context, c access.Caller, id string, after int64) (run *sandbox.Run, events []*sandbox.RunEvent, err error) {
	err = r.store.View(ctx, func(tx store.Tx) (err error) {
		if run, err = tx.Runs().Get(id); err != nil {
			return err
		}
		if run.Project != c.Project {
			return noRun(id)
		}
		if events, err = tx.Runs().Events(id, after, eventPage); err != nil || len(events) > 0 || after == 0 {
			return err
		}
		last, err := tx.Runs().LastSeq(id)
		if err == nil && (after > last || after < 0) {
			err = fault.InvalidField("after", "%d is not an event of this run; its last one is %d", after, last).
				WithRemedy("pass the id of an event that you have seen, or none for all of them")
		}
		return err
	})
	if fault.Is(err, fault.NotFound) {
		err = noRun(id)
	}
	return run, events, err
}

// Streams is what a command of a run gave out, as far as it is kept.
type Streams struct{ Stdout, Stderr []byte }

// Streams returns what is kept of the output of a run's commands, by command.
func (r *Runner) Streams(ctx context.Context, c access.Caller, id string) ([]Streams, error) {
	run, err := r.Get(ctx, c, id)
	if err != nil {
		return nil, err
	}
	out := make([]Streams, len(run.Commands))
	for after := int64(0); ; {
		var events []*sandbox.RunEvent
		err := r.store.View(ctx, func(tx store.Tx) (err error) {
			events, err = tx.Runs().Events(id, after, eventPage)
			return err
		})
		if err != nil || len(events) == 0 {
			return out, err
		}
		for _, ev := range events {
			after = ev.Seq
			switch {
			case ev.Command < 0 || ev.Command >= len(out):
			case ev.Type == sandbox.RunCommandStdout:
				out[ev.Command].Stdout = append(out[ev.Command].Stdout, ev.Data...)
			case ev.Type == sandbox.RunCommandStderr:
				out[ev.Command].Stderr = append(out[ev.Command].Stderr, ev.Data...)
			}
		}
	}
}
