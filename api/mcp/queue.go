// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"sync"
)

// queues let one run at a time work in a sandbox, in the order in which they
// came, for runs that ask for it.
type queues struct {
	mu    sync.Mutex
	lines map[queueKey][]chan struct{} // the first has its turn
}

type queueKey struct{ project, identifier string }

func newQueues() *queues { return &queues{lines: make(map[queueKey][]chan struct{})} }

// take waits for the turn. give ends it; it is called once, and only without an error.
func (q *queues) take(ctx context.Context, k queueKey) (give func(), err error) {
	turn := make(chan struct{})
	q.mu.Lock()
	q.lines[k] = append(q.lines[k], turn)
	if len(q.lines[k]) == 1 {
		close(turn)
	}
	q.mu.Unlock()
	select {
	case <-turn:
		return func() { q.leave(k, turn) }, nil
	case <-ctx.Done():
		q.leave(k, turn)
		return nil, ctx.Err()
	}
}

func (q *queues) leave(k queueKey, turn chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.lines[k]
	for i, t := range line {
		if t != turn {
			continue
		}
		// A copy, so that what left is not kept alive by the array.
		rest := append(append([]chan struct{}(nil), line[:i]...), line[i+1:]...)
		if len(rest) == 0 {
			delete(q.lines, k)
			return
		}
		q.lines[k] = rest
		if i == 0 {
			close(rest[0])
		}
		return
	}
}
