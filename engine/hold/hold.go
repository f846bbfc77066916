// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package hold says which snapshots and volumes are in use. It knows their ids, and neither
// records nor drivers nor verbs.
package hold

import (
	"context"
	"sync"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Table says which snapshots are in use: a sandbox is being made of one, or rolled
// back to it; it is compared, or written out. What is held is not deleted. Who
// makes or deletes one has it alone. It is safe for concurrent use.
type Table struct {
	Patience time.Duration // how long OwnSoon waits for those who use the snapshot; set before the table is used

	mu   sync.Mutex
	byID map[sandbox.ID]*hold
	pins map[sandbox.ID]func() // by sandbox that is Restoring: lets go of what it is to become
}

type hold struct {
	shared  int
	alone   bool
	waiting int
	changed chan struct{} // closed when somebody let go
}

// New returns a table in which nothing is held. Who cannot have a snapshot within patience is
// told by OwnSoon.
func New(patience time.Duration) *Table {
	return &Table{Patience: patience, byID: make(map[sandbox.ID]*hold), pins: make(map[sandbox.ID]func())}
}

// Len counts the snapshots that are held, waited for or pinned.
func (h *Table) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.byID) + len(h.pins)
}

// Share holds a snapshot together with others, after whoever has it alone. Let go
// of it once.
func (h *Table) Share(ctx context.Context, id sandbox.ID) (release func(), err error) {
	return h.take(ctx, id, false)
}

// Own has a snapshot alone, after all who hold it. Let go of it once.
func (h *Table) Own(ctx context.Context, id sandbox.ID) (release func(), err error) {
	return h.take(ctx, id, true)
}

func (h *Table) take(ctx context.Context, id sandbox.ID, alone bool) (func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.byID[id]
	if x == nil {
		x = &hold{changed: make(chan struct{})}
		h.byID[id] = x
	}
	for x.alone || alone && x.shared > 0 {
		changed := x.changed
		x.waiting++
		h.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		h.mu.Lock()
		x.waiting--
		if err != nil {
			h.tidy(id, x)
			return nil, err
		}
	}
	if alone {
		x.alone = true
	} else {
		x.shared++
	}
	return sync.OnceFunc(func() { h.release(id, x, alone) }), nil
}

func (h *Table) release(id sandbox.ID, x *hold, alone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if alone {
		x.alone = false
	} else {
		x.shared--
	}
	close(x.changed)
	x.changed = make(chan struct{})
	h.tidy(id, x)
}

// tidy forgets a snapshot that nobody holds or waits for. The caller has mu.
func (h *Table) tidy(id sandbox.ID, x *hold) {
	if !x.alone && x.shared == 0 && x.waiting == 0 {
		delete(h.byID, id)
	}
}

// OwnSoon is Own for a caller who is told when the snapshot stays in use.
func (h *Table) OwnSoon(ctx context.Context, id sandbox.ID) (release func(), err error) {
	soon, cancel := context.WithTimeout(ctx, h.Patience)
	defer cancel()
	release, err = h.Own(soon, id)
	if err != nil && ctx.Err() == nil {
		busy := fault.New(fault.Conflict, "the snapshot %s is in use: a sandbox is being made of it or rolled back to it, or it is being read", id)
		busy.Retry = h.Patience
		return nil, busy.WithRemedy("ask again when that is over")
	}
	return release, err
}

// Pin keeps the snapshot that a sandbox is to become for as long as the sandbox is
// Restoring, also when that cannot be finished for now.
func (h *Table) Pin(of sandbox.ID, release func()) {
	h.mu.Lock()
	old := h.pins[of]
	h.pins[of] = release
	h.mu.Unlock()
	if old != nil {
		old()
	}
}

// Unpin lets go of what Pin keeps; without it there is nothing to do.
func (h *Table) Unpin(of sandbox.ID) {
	h.mu.Lock()
	release := h.pins[of]
	delete(h.pins, of)
	h.mu.Unlock()
	if release != nil {
		release()
	}
}
