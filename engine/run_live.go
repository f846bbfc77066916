// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// runs are those that have not ended.
type runs struct {
	lines lines
	wake  chan struct{} // something is to be collected

	mu      sync.Mutex
	live    map[string]*liveRun
	crowded map[string]bool // projects that may have more runs than are kept
}

func newRuns() *runs {
	return &runs{live: make(map[string]*liveRun), crowded: make(map[string]bool), wake: make(chan struct{}, 1)}
}

func (r *runs) add(l *liveRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[l.id] = l
}

func (r *runs) remove(l *liveRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, l.id)
}

// get gives nil for one that has ended, or is nobody's.
func (r *runs) get(id string) *liveRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live[id]
}

// crowd has the collector count the runs of a project.
func (r *runs) crowd(project string) {
	r.mu.Lock()
	r.crowded[project] = true
	r.mu.Unlock()
	r.collect()
}

// uncrowd gives the projects that are to be counted.
func (r *runs) uncrowd() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.crowded
	r.crowded = make(map[string]bool)
	return all
}

// collect has the collector look soon.
func (r *runs) collect() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// liveRun is a run that a goroutine of the engine works at: nobody else writes it.
type liveRun struct {
	e      *Engine
	id     string
	caller access.Caller
	place  *runPlace     // in line; nil: it waits for no other run
	done   chan struct{} // closed when it has ended, or the engine has
	over   chan struct{} // closed when it is to end, for it was cancelled
	once   sync.Once     // closes over

	mu      sync.Mutex
	run     *sandbox.Run // as it is in the store; what it points to is never changed
	seq     int64        // of the last event
	changed chan struct{}
}

func newLiveRun(e *Engine, c access.Caller, run *sandbox.Run) *liveRun {
	return &liveRun{
		e: e, id: run.ID, caller: c, run: run,
		done: make(chan struct{}), over: make(chan struct{}), changed: make(chan struct{}),
	}
}

// record gives the run as it is in the store. It is not to be changed.
func (l *liveRun) record() *sandbox.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.run
}

// changes gives what is closed at the next commit.
func (l *liveRun) changes() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// runChange is what a commit does to a run.
type runChange struct {
	change   func(*sandbox.Run)
	commands []int // whose records it changes
	events   []*sandbox.RunEvent
}

// write makes the change in a transaction, and gives what is to be done once that is
// committed. The caller has l.mu until then.
func (l *liveRun) write(tx store.Tx, c runChange) (committed func(), err error) {
	next := cloneRun(l.run)
	if c.change != nil {
		c.change(next)
	}
	if err := tx.Runs().Update(next); err != nil {
		return nil, err
	}
	for _, i := range c.commands {
		if err := tx.Runs().UpdateCommand(l.id, i, &next.Commands[i]); err != nil {
			return nil, err
		}
	}
	for i, ev := range c.events {
		ev.Seq = l.seq + int64(i) + 1
		if err := tx.Runs().Append(l.id, ev); err != nil {
			return nil, err
		}
	}
	return func() {
		l.run, l.seq = next, l.seq+int64(len(c.events))
		close(l.changed)
		l.changed = make(chan struct{})
	}, nil
}

// commit writes a change. A store that refuses it is asked again until it does, since a
// run must not say what is not so. The error is ctx's, and nothing was written then.
func (l *liveRun) commit(ctx context.Context, c runChange) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := l.tryCommit(ctx, c)
		switch {
		case err == nil: // also where ctx ended meanwhile: who heard of an error would write it again
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		l.e.log.Error("a run cannot be recorded now; it is tried again", "run", l.id, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *liveRun) tryCommit(ctx context.Context, c runChange) error {
	if slices.ContainsFunc(c.events, func(ev *sandbox.RunEvent) bool { return len(ev.Data) > 0 }) {
		if err := l.e.store.Room(); err != nil {
			return err // output waits in the process's log
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var committed func()
	err := l.e.store.Update(ctx, func(tx store.Tx) (err error) {
		committed, err = l.write(tx, c)
		return err
	})
	if err == nil {
		committed()
	}
	return err
}

// cancel notes that the run is to end, and has it end.
func (l *liveRun) cancel(ctx context.Context) error {
	if err := l.tryCommit(ctx, runChange{change: func(r *sandbox.Run) { r.Canceled = true }}); err != nil {
		return err
	}
	l.stop()
	return nil
}

func (l *liveRun) stop() { l.once.Do(func() { close(l.over) }) }

func (e *Engine) runEvent(t sandbox.RunEventType, command int) *sandbox.RunEvent {
	return &sandbox.RunEvent{Type: t, At: e.now().UTC().Truncate(time.Microsecond), Command: command}
}
