// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// box is what the engine keeps in memory of one sandbox: while it runs, and
// while a verb is at it. Every user of a box holds a reference (see
// Engine.acquire); a running sandbox's own life holds one too.
type box struct {
	id      sandbox.ID
	refs    int    // guarded by Engine.mu
	project string // set with the first record

	turn *turn // of the lifecycle verbs

	// record is the last committed record; nil before it was read, and after it
	// was deleted. What it points to is never changed.
	record atomic.Pointer[sandbox.Sandbox]

	portConns atomic.Int64 // connections to its ports

	contexts contexts // of code

	commitMu sync.Mutex // one commit of this sandbox at a time
	read     bool       // the store was asked
	stale    bool       // a commit failed: what the store has is not known

	mu   sync.Mutex
	live *live     // nil unless up and to stay so
	busy int       // commands, terminals and transfers that are not over
	last time.Time // of the last call that counts
}

// live is one time of being up.
type live struct {
	inst   runtime.Instance
	client *agent.Client
	env    map[string]string // the image's and the sandbox's, of every command
	down   chan struct{}     // closed when the instance is down, after exit was set
	exit   runtime.Exit
}

// acquire gives the box of a sandbox, read from the store if it is not in
// memory. It is fault.NotFound if there is none. Release it.
func (e *Engine) acquire(ctx context.Context, id sandbox.ID) (*box, error) {
	e.mu.Lock()
	b := e.boxes[id]
	if b == nil {
		b = &box{id: id, turn: newTurn()}
		e.boxes[id] = b
	}
	b.refs++
	e.mu.Unlock()
	if b.record.Load() != nil {
		return b, nil
	}
	if err := e.load(ctx, b); err != nil {
		e.release(b)
		return nil, err
	}
	return b, nil
}

// stored reads a record from the store.
func (e *Engine) stored(ctx context.Context, id sandbox.ID) (s *sandbox.Sandbox, err error) {
	err = e.store.View(ctx, func(tx store.Tx) (err error) {
		s, err = tx.Sandboxes().Get(id)
		return err
	})
	return s, err
}

func (e *Engine) load(ctx context.Context, b *box) error {
	b.commitMu.Lock()
	defer b.commitMu.Unlock()
	if b.record.Load() != nil {
		return nil
	}
	if b.read {
		return noSandbox(string(b.id))
	}
	s, err := e.stored(ctx, b.id)
	if fault.Is(err, fault.NotFound) {
		b.read = true
		return noSandbox(string(b.id))
	}
	if err != nil {
		return err
	}
	e.settleRecord(b, s)
	return nil
}

// settleRecord makes s the box's record.
func (e *Engine) settleRecord(b *box, s *sandbox.Sandbox) {
	b.read, b.project = true, s.Project
	b.record.Store(s)
	if s.Key != "" {
		e.mu.Lock()
		e.names[name{s.Project, s.Key}] = s.ID
		e.mu.Unlock()
	}
}

// adopt adds a box for a record that is being inserted. Release it.
func (e *Engine) adopt(id sandbox.ID) *box {
	b := &box{id: id, turn: newTurn(), refs: 1}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.boxes[id] = b
	return b
}

func (e *Engine) retain(b *box) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b.refs++
}

func (e *Engine) release(b *box) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b.refs--; b.refs > 0 {
		return
	}
	delete(e.boxes, b.id)
	if s := b.record.Load(); s != nil && s.Key != "" {
		delete(e.names, name{s.Project, s.Key})
	}
}

// forget takes the record of a deleted sandbox out of memory.
func (e *Engine) forget(b *box) {
	s := b.record.Swap(nil)
	if s == nil {
		return
	}
	e.metrics.moved(s.State, "")
	e.clock.drop(b.id)
	if s.Key != "" {
		e.mu.Lock()
		defer e.mu.Unlock()
		if n := (name{s.Project, s.Key}); e.names[n] == b.id {
			delete(e.names, n)
		}
	}
}

// current is a copy of the record, with what memory knows better. It is
// fault.NotFound once the sandbox is deleted.
func (b *box) current() (*sandbox.Sandbox, error) {
	s := b.record.Load()
	if s == nil {
		return nil, noSandbox(string(b.id))
	}
	c := clone(s)
	b.mu.Lock()
	defer b.mu.Unlock()
	c.LastActivity = later(c.LastActivity, b.last)
	return c, nil
}

func clone(s *sandbox.Sandbox) *sandbox.Sandbox {
	c := *s
	c.Env, c.Metadata, c.Handle = maps.Clone(s.Env), maps.Clone(s.Metadata), slices.Clone(s.Handle)
	return &c
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// touch notes a call that counts against idleness.
func (b *box) touch(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = later(b.last, at)
}

// hold takes the sandbox into use if it is up; nil if not.
func (b *box) hold(at time.Time) *live {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live == nil {
		return nil
	}
	b.busy++
	b.last = later(b.last, at)
	return b.live
}

// unhold ends a use.
func (b *box) unhold(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy--
	b.last = later(b.last, at)
}

// withdraw makes the sandbox unavailable to new uses, if still may is nil or
// agrees (it sees how many uses there are, and the last call), and gives what
// was up, if anything.
func (b *box) withdraw(may func(busy int, last time.Time) bool) (was *live, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if may != nil && !may(b.busy, b.last) {
		return nil, false
	}
	was, b.live = b.live, nil
	return was, true
}

func (b *box) up() *live {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.live
}
