// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"sync"
)

// Turn is a lock that can be waited for with a context.
type Turn struct {
	slot chan struct{}
	refs int // guarded by Turns.mu; how many wait for it or have it
}

// NewTurn returns a free turn.
func NewTurn() *Turn { return &Turn{slot: make(chan struct{}, 1)} }

// Take waits for the turn, or for ctx's end.
func (t *Turn) Take(ctx context.Context) error {
	select {
	case t.slot <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release gives the turn back.
func (t *Turn) Release() { <-t.slot }

// Turns are the turns of names that may stand for nothing yet. A turn is kept only while it is held or waited for.
type Turns[N comparable] struct {
	mu    sync.Mutex
	turns map[N]*Turn
}

// NewTurns returns none.
func NewTurns[N comparable]() *Turns[N] { return &Turns[N]{turns: make(map[N]*Turn)} }

// Take takes the turn of a name; give it back by the function.
func (k *Turns[N]) Take(ctx context.Context, n N) (give func(), err error) {
	k.mu.Lock()
	t := k.turns[n]
	if t == nil {
		t = NewTurn()
		k.turns[n] = t
	}
	t.refs++
	k.mu.Unlock()
	drop := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if t.refs--; t.refs == 0 {
			delete(k.turns, n)
		}
	}
	if err := t.Take(ctx); err != nil {
		drop()
		return nil, err
	}
	return func() { t.Release(); drop() }, nil
}

// Len returns how many names have a turn that somebody has, or waits for.
func (k *Turns[N]) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.turns)
}
