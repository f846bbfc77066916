// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package budget bounds the memory of answers that a server holds, in all and for each project,
// and how fast a project takes it, which bounds the processor time that its answers cost. A
// request over a bound waits a while, and is then refused. The package counts bytes and does not
// know what they are.
package budget

import (
	"context"
	"slices"
	"sync"
	"time"

	"sandpit.dev/fault"
)

// Options are the bounds of a budget. Zero fields take the value named behind them.
type Options struct {
	Total   int64         // bytes; DefaultTotal
	Rate    int64         // bytes that one project takes in a second, after the first; DefaultRate
	Wait    time.Duration // the longest that a request for bytes waits; 10 s
	Waiting int           // requests of one project that may wait; 64. Eight times as many of all
}

// DefaultTotal is the default size of a budget.
const DefaultTotal = 256 << 20

// DefaultRate is the default pace of a budget. Answers at that rate take about a third of a
// processor.
const DefaultRate = 128 << 20

const (
	defaultWait    = 10 * time.Second
	defaultWaiting = 64
	projectsWorth  = 8 // how many projects' worth of waiters there may be in all
)

// Budget is bytes that many callers share. A project may hold as many as it leaves free: one
// alone half of all, a second half of the rest. So there is always room for a project that holds
// none. It is safe for concurrent use.
type Budget struct {
	total   int64
	wait    time.Duration
	waiting int
	rate    int64

	mu    sync.Mutex
	used  int64
	held  map[string]int64 // by project
	queue []*waiter        // in their order
	count map[string]int   // of queue, by project

	paid   map[string]time.Time // when what a project took is paid for, at its rate
	pacing map[string]int       // requests that wait for that, by project
}

// waiter is one request that waits.
type waiter struct {
	project string
	n       int64
	granted chan struct{} // closed when the bytes are its own
}

// New returns an unused budget.
func New(o Options) *Budget {
	if o.Total <= 0 {
		o.Total = DefaultTotal
	}
	if o.Wait <= 0 {
		o.Wait = defaultWait
	}
	if o.Waiting <= 0 {
		o.Waiting = defaultWaiting
	}
	if o.Rate <= 0 {
		o.Rate = DefaultRate
	}
	return &Budget{
		total: o.Total, wait: o.Wait, waiting: o.Waiting, rate: o.Rate, held: make(map[string]int64), count: make(map[string]int),
		paid: make(map[string]time.Time), pacing: make(map[string]int),
	}
}

// Total returns the bytes of the budget.
func (b *Budget) Total() int64 { return b.total }

// Used returns the bytes that are held.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Waiting returns how many requests wait.
func (b *Budget) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// Most returns the most bytes that one answer may hold: few enough for a project that
// holds none to be granted them while another holds its share.
func (b *Budget) Most() int64 { return b.total / 8 }

// Open returns the room of one answer to a project, which is empty and costs nothing. The caller
// closes it.
func (b *Budget) Open(project string) *Room { return &Room{b: b, project: project} }

// fits reports whether a project may have n bytes more.
func (b *Budget) fits(project string, n int64) bool {
	return b.held[project]+n <= b.total-b.used-n
}

func (b *Budget) grant(project string, n int64) {
	b.used += n
	b.held[project] += n
}

// take returns when n bytes are the project's, ctx is done or the wait is over.
func (b *Budget) take(ctx context.Context, project string, n int64) error {
	if err := b.pace(ctx, project, n); err != nil {
		return err
	}
	b.mu.Lock()
	if b.count[project] == 0 && b.fits(project, n) {
		b.grant(project, n)
		b.mu.Unlock()
		return nil
	}
	if b.count[project] >= b.waiting || len(b.queue) >= projectsWorth*b.waiting {
		b.mu.Unlock()
		return b.refusal()
	}
	w := &waiter{project: project, n: n, granted: make(chan struct{})}
	b.queue = append(b.queue, w)
	b.count[project]++
	b.mu.Unlock()
	t := time.NewTimer(b.wait)
	defer t.Stop()
	var err error
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-t.C:
		err = b.refusal()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.granted: // granted at the same time
		return nil
	default:
	}
	i := slices.Index(b.queue, w)
	b.queue = slices.Delete(b.queue, i, i+1)
	b.leave(project)
	b.admit() // those behind it
	return err
}

func (b *Budget) leave(project string) {
	if b.count[project]--; b.count[project] == 0 {
		delete(b.count, project)
	}
}

// give takes n bytes back.
func (b *Budget) give(project string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.held[project] -= n; b.held[project] == 0 {
		delete(b.held, project)
	}
	b.admit()
}

// admit grants what fits now: each project's requests in their order, independent of other
// projects' requests that do not fit.
func (b *Budget) admit() {
	if len(b.queue) == 0 {
		return
	}
	stuck := make(map[string]bool)
	b.queue = slices.DeleteFunc(b.queue, func(w *waiter) bool {
		if stuck[w.project] || !b.fits(w.project, w.n) {
			stuck[w.project] = true
			return false
		}
		b.grant(w.project, w.n)
		b.leave(w.project)
		close(w.granted)
		return true
	})
}

func (b *Budget) refusal() error {
	err := fault.New(fault.Exhausted, "the server holds as many large answers in memory as it may, or as your project's share is")
	err.Retry = time.Second
	return err.WithRemedy("ask again in a moment, for less at a time, or as a stream")
}
