// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// holds say which snapshots are in use: a sandbox is being made of one, or rolled
// back to it; it is compared, or written out. What is held is not deleted. Who
// makes or deletes one has it alone.
type holds struct {
	patience time.Duration // how long a deletion waits for those who use the snapshot

	mu    sync.Mutex
	byID  map[sandbox.ID]*hold
	boxes map[sandbox.ID]func() // by sandbox that is Restoring: lets go of what it is to become
}

type hold struct {
	shared  int
	alone   bool
	waiting int
	changed chan struct{} // closed when somebody let go
}

func newHolds() *holds {
	return &holds{patience: holdPatience, byID: make(map[sandbox.ID]*hold), boxes: make(map[sandbox.ID]func())}
}

// share holds a snapshot together with others, after whoever has it alone. Let go
// of it once.
func (h *holds) share(ctx context.Context, id sandbox.ID) (release func(), err error) {
	return h.take(ctx, id, false)
}

// own has a snapshot alone, after all who hold it. Let go of it once.
func (h *holds) own(ctx context.Context, id sandbox.ID) (release func(), err error) {
	return h.take(ctx, id, true)
}

func (h *holds) take(ctx context.Context, id sandbox.ID, alone bool) (func(), error) {
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

func (h *holds) release(id sandbox.ID, x *hold, alone bool) {
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
func (h *holds) tidy(id sandbox.ID, x *hold) {
	if !x.alone && x.shared == 0 && x.waiting == 0 {
		delete(h.byID, id)
	}
}

// holdPatience is the patience of an engine.
const holdPatience = 10 * time.Second

// ownSoon is own for a caller who is told when the snapshot stays in use.
func (h *holds) ownSoon(ctx context.Context, id sandbox.ID) (release func(), err error) {
	soon, cancel := context.WithTimeout(ctx, h.patience)
	defer cancel()
	release, err = h.own(soon, id)
	if err != nil && ctx.Err() == nil {
		busy := fault.New(fault.Conflict, "the snapshot %s is in use: a sandbox is being made of it or rolled back to it, or it is being read", id)
		busy.Retry = h.patience
		return nil, busy.WithRemedy("ask again when that is over")
	}
	return release, err
}

// pin keeps the snapshot that a sandbox is to become for as long as the sandbox is
// Restoring, also when that cannot be finished for now.
func (h *holds) pin(of sandbox.ID, release func()) {
	h.mu.Lock()
	old := h.boxes[of]
	h.boxes[of] = release
	h.mu.Unlock()
	if old != nil {
		old()
	}
}

// unpin lets go of it.
func (h *holds) unpin(of sandbox.ID) {
	h.mu.Lock()
	release := h.boxes[of]
	delete(h.boxes, of)
	h.mu.Unlock()
	if release != nil {
		release()
	}
}
