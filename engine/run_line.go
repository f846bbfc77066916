// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
)

// lines let one run at a time work in a sandbox, in the order in which they came, for
// runs that ask for it. They are by name, since the first run has no sandbox yet.
type lines struct {
	mu sync.Mutex
	of map[name][]*runPlace // the first has its turn
}

// runPlace is a place in a line.
type runPlace struct {
	lines *lines
	name  name
	turn  chan struct{} // closed when it is first
}

// join takes the last place. Leave it, once.
func (q *lines) join(n name) *runPlace {
	p := &runPlace{q, n, make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of == nil {
		q.of = make(map[name][]*runPlace)
	}
	q.of[n] = append(q.of[n], p)
	if len(q.of[n]) == 1 {
		close(p.turn)
	}
	return p
}

// wait waits for the turn. Its error is ctx's; the place is kept. Nil waits for nothing.
func (p *runPlace) wait(ctx context.Context) error {
	if p == nil {
		return nil
	}
	select {
	case <-p.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave gives the place up, with its turn or before it.
func (p *runPlace) leave() {
	if p == nil {
		return
	}
	q := p.lines
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.of[p.name]
	for i, x := range line {
		if x != p {
			continue
		}
		// A copy, so that what left is not kept alive by the array.
		rest := append(append([]*runPlace(nil), line[:i]...), line[i+1:]...)
		if len(rest) == 0 {
			delete(q.of, p.name)
			return
		}
		q.of[p.name] = rest
		if i == 0 {
			close(rest[0].turn)
		}
		return
	}
}
