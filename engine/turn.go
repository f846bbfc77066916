// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import "context"

// turn is a lock that can be waited for with a context.
type turn struct {
	slot chan struct{}
	refs int // guarded by Engine.mu; how many wait for it or have it
}

func newTurn() *turn { return &turn{slot: make(chan struct{}, 1)} }

func (t *turn) take(ctx context.Context) error {
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

func (t *turn) release() { <-t.slot }

// held is an entry whose turn is held: what takes one may only be called then. The turn is taken by
// entry.take, or by one of the engine's that take it, and given back by release, once.
type held struct{ *entry }

// take waits for the turn of an entry.
func (b *entry) take(ctx context.Context) (held, error) {
	if err := b.turn.take(ctx); err != nil {
		return held{}, err
	}
	return held{b}, nil
}

func (b held) release() { b.turn.release() }

// takeKey takes the turn of a key that may have no sandbox yet; give it back by
// the function. Turns that nobody wants are not kept.
func (e *Engine) takeKey(ctx context.Context, n name) (give func(), err error) {
	e.mu.Lock()
	t := e.keys[n]
	if t == nil {
		t = newTurn()
		e.keys[n] = t
	}
	t.refs++
	e.mu.Unlock()
	drop := func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if t.refs--; t.refs == 0 {
			delete(e.keys, n)
		}
	}
	if err := t.take(ctx); err != nil {
		drop()
		return nil, err
	}
	return func() { t.release(); drop() }, nil
}
