// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"slices"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// worker works at one run, in a goroutine of its own: nothing else writes the run.
type worker struct {
	r      *Runner
	id     string
	caller access.Caller
	ticket *ticket       // nil: it waits for no other run
	done   chan struct{} // closed when the run has ended, or the engine has
	over   chan struct{} // closed when the run is to end, for it was cancelled
	once   sync.Once     // closes over

	mu      sync.Mutex
	run     *sandbox.Run // as it is in the store; what it points to is never changed
	seq     int64        // of the last event
	changed chan struct{}
}

func newWorker(r *Runner, c access.Caller, run *sandbox.Run) *worker {
	return &worker{
		r: r, id: run.ID, caller: c, run: run,
		done: make(chan struct{}), over: make(chan struct{}), changed: make(chan struct{}),
	}
}

// record returns the run as it is in the store. It is not to be changed.
func (w *worker) record() *sandbox.Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.run
}

// changes returns what is closed at the next commit.
func (w *worker) changes() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// change is what a commit does to a run.
type change struct {
	run      func(*sandbox.Run)
	commands []int // whose records it changes
	events   []*sandbox.RunEvent
}

// write makes the change in a transaction, and returns what is to be done once that is
// committed. The caller has w.mu until then.
func (w *worker) write(tx store.Tx, c change) (committed func(), err error) {
	next := clone(w.run)
	if c.run != nil {
		c.run(next)
	}
	if err := tx.Runs().Update(next); err != nil {
		return nil, err
	}
	for _, i := range c.commands {
		if err := tx.Runs().UpdateCommand(w.id, i, &next.Commands[i]); err != nil {
			return nil, err
		}
	}
	for i, ev := range c.events {
		ev.Seq = w.seq + int64(i) + 1
		if err := tx.Runs().Append(w.id, ev); err != nil {
			return nil, err
		}
	}
	return func() {
		w.run, w.seq = next, w.seq+int64(len(c.events))
		close(w.changed)
		w.changed = make(chan struct{})
	}, nil
}

func clone(run *sandbox.Run) *sandbox.Run {
	c := *run
	c.Commands, c.Artifacts = slices.Clone(run.Commands), slices.Clone(run.Artifacts)
	return &c
}

// commit writes a change. A store that refuses it is asked again until it does, since a
// run must not say what is not so. The error is ctx's, and nothing was written then.
func (w *worker) commit(ctx context.Context, c change) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := w.tryCommit(ctx, c)
		switch {
		case err == nil: // also where ctx ended meanwhile: a caller with an error would write it again
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		w.r.o.Logger.Error("a run cannot be recorded now; it is tried again", "run", w.id, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *worker) tryCommit(ctx context.Context, c change) error {
	if slices.ContainsFunc(c.events, func(ev *sandbox.RunEvent) bool { return len(ev.Data) > 0 }) {
		if err := w.r.store.Room(); err != nil {
			return err // output waits in the process's log
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var committed func()
	err := w.r.store.Update(ctx, func(tx store.Tx) (err error) {
		committed, err = w.write(tx, c)
		return err
	})
	if err == nil {
		committed()
	}
	return err
}

// cancel records that the run is to end, and has it end.
func (w *worker) cancel(ctx context.Context) error {
	if err := w.tryCommit(ctx, change{run: func(run *sandbox.Run) { run.Canceled = true }}); err != nil {
		return err
	}
	w.stop()
	return nil
}

func (w *worker) stop() { w.once.Do(func() { close(w.over) }) }
