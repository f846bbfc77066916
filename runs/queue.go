// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"sync"
)

// name is a key of a sandbox, or its id, within its project.
type name struct{ project, key string }

// queues let one run at a time work in a sandbox, in the order in which they came, for
// runs that ask for it. They are by name, since the first run has no sandbox yet.
type queues struct {
	mu sync.Mutex
	of map[name][]*ticket // the first has its turn
}

// ticket is a place in a queue.
type ticket struct {
	queues *queues
	name   name
	turn   chan struct{} // closed when it is first
}

// join takes the last place. Leave it, once.
func (q *queues) join(n name) *ticket {
	t := &ticket{q, n, make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of == nil {
		q.of = make(map[name][]*ticket)
	}
	q.of[n] = append(q.of[n], t)
	if len(q.of[n]) == 1 {
		close(t.turn)
	}
	return t
}

// wait waits for the turn. Its error is ctx's; the place is kept. Nil waits for nothing.
func (t *ticket) wait(ctx context.Context) error {
	if t == nil {
		return nil
	}
	select {
	case <-t.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave ends the place, with its turn or before it.
func (t *ticket) leave() {
	if t == nil {
		return
	}
	q := t.queues
	q.mu.Lock()
	defer q.mu.Unlock()
	queue := q.of[t.name]
	for i, x := range queue {
		if x != t {
			continue
		}
		// A copy, so that what left is not kept alive by the array.
		rest := append(append([]*ticket(nil), queue[:i]...), queue[i+1:]...)
		if len(rest) == 0 {
			delete(q.of, t.name)
			return
		}
		q.of[t.name] = rest
		if i == 0 {
			close(rest[0].turn)
		}
		return
	}
}
