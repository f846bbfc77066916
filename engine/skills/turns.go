// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package skills

import (
	"context"
	"sync"

	"sandpit.dev/sandbox"
)

// turns has the installs into one sandbox follow each other. The zero value is ready.
type turns struct {
	mu sync.Mutex
	at map[sandbox.ID]*turn
}

type turn struct {
	free chan struct{} // of one: whoever takes it has the turn
	n    int           // who has it or waits for it
}

// take waits for the turn of a sandbox, and returns how to give it back.
func (t *turns) take(ctx context.Context, id sandbox.ID) (give func(), err error) {
	t.mu.Lock()
	if t.at == nil {
		t.at = make(map[sandbox.ID]*turn)
	}
	w := t.at[id]
	if w == nil {
		w = &turn{free: make(chan struct{}, 1)}
		w.free <- struct{}{}
		t.at[id] = w
	}
	w.n++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if w.n--; w.n == 0 {
			delete(t.at, id)
		}
	}
	select {
	case <-w.free:
		return func() { w.free <- struct{}{}; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
