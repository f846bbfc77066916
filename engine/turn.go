// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import "context"

// held is an entry whose turn is held: what takes one may only be called then. The turn is taken by
// entry.take, or by one of the engine's that take it, and given back by release, once.
type held struct{ *entry }

// take waits for the turn of an entry.
func (b *entry) take(ctx context.Context) (held, error) {
	if err := b.turn.Take(ctx); err != nil {
		return held{}, err
	}
	return held{b}, nil
}

func (b held) release() { b.turn.Release() }
