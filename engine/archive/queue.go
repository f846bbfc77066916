// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"context"
	"io"
	"runtime"
	"sync"
	"time"

	"sandpit.dev/fault"
)

// Bounds of imports.
const (
	// MaxImports is how many archives of a project are read at once. Most of them wait for
	// their clients.
	MaxImports = 8
	// importAhead is how much of a body is unpacked before others have their turn.
	importAhead = 32 << 10
	importRetry = 5 * time.Second
)

// Queue bounds what importing costs: a project unpacks one archive at a time, and the
// server a few. An import has its turn only while it unpacks what has come: one that waits
// for its client holds nothing. It is safe for concurrent use.
type Queue struct {
	turns chan struct{} // one for each that unpacks

	mu sync.Mutex
	of map[string]*projectImports
}

type projectImports struct {
	open int
	turn chan struct{} // of the one that unpacks
}

// NewQueue returns a queue in which nothing waits.
func NewQueue() *Queue {
	return &Queue{turns: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)/2)), of: make(map[string]*projectImports)}
}

// Begin counts one more, or fails with fault.Exhausted. Call End once it is over.
func (i *Queue) Begin(project string) (*Turn, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p := i.of[project]
	if p == nil {
		p = &projectImports{turn: make(chan struct{}, 1)}
		i.of[project] = p
	}
	if p.open >= MaxImports {
		err := fault.New(fault.Exhausted, "%d archives are being imported into the project %s, which is the most", p.open, project).
			WithRemedy("wait until one of them is done")
		err.Retry = importRetry
		return nil, err
	}
	p.open++
	return &Turn{all: i, project: project, turn: p.turn}, nil
}

// Turn is one import's turn to unpack. It belongs to that import's goroutines, of
// which one runs at a time.
type Turn struct {
	all     *Queue
	project string
	turn    chan struct{}
	held    bool
}

// take waits for the turn. Of each project one import waits for the server's, so that
// projects have theirs in order.
func (t *Turn) take(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case t.all.turns <- struct{}{}:
	case <-ctx.Done():
		<-t.turn
		return ctx.Err()
	}
	t.held = true
	return nil
}

func (t *Turn) release() {
	if t.held {
		t.held = false
		<-t.all.turns
		<-t.turn
	}
}

// End ends the import, and its turn if it has it.
func (t *Turn) End() {
	t.release()
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	p := t.all.of[t.project]
	if p.open--; p.open == 0 {
		delete(t.all.of, t.project)
	}
}

// Reader returns r as what has its turn whenever Read is back, and none while it waits for r.
func (t *Turn) Reader(ctx context.Context, r io.Reader) io.Reader {
	return bufio.NewReaderSize(&turnReader{ctx, r, t}, importAhead)
}

type turnReader struct {
	ctx  context.Context
	r    io.Reader
	turn *Turn
}

func (r *turnReader) Read(p []byte) (int, error) {
	r.turn.release()
	n, err := r.r.Read(p)
	if taken := r.turn.take(r.ctx); taken != nil {
		return 0, taken
	}
	return n, err
}
