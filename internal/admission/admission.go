// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package admission bounds how much is begun at once. Who comes when all places are taken waits for one, behind
// others of its project and in turn with other projects; who would wait too long is refused when it comes, which
// costs next to nothing. It does not know what is begun.
package admission

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"sandpit.dev/fault"
)

// Options are the bounds of a [Gate]. Zero fields take the value named behind them.
type Options struct {
	What    string        // is begun, in the plural, for messages: "creates"
	AtOnce  int           // places; 32
	Waiting int           // most that wait, of one project half of it; 4096
	Wait    time.Duration // who can be seen to wait longer is refused at once; who did wait twice as long, then; a minute
	Lease   time.Duration // a place that is held so long is free again: its holder waits for something else than the host; 10 s
}

const (
	defaultAtOnce  = 32
	defaultWaiting = 4096
	defaultWait    = time.Minute
	defaultLease   = 10 * time.Second
)

// Gate gives places out. It is safe for concurrent use.
type Gate struct {
	o Options

	mu      sync.Mutex
	taken   int
	waiting int
	queues  map[string][]*ticket // by project; none is empty
	turns   []string             // the projects of queues, the next one first
	held    time.Duration        // how long a place is held, as of late
	refused int64
}

// ticket is one that waits.
type ticket struct{ admitted chan struct{} }

// New returns a gate whose places are all free.
func New(o Options) *Gate {
	if o.AtOnce <= 0 {
		o.AtOnce = defaultAtOnce
	}
	if o.Waiting <= 0 {
		o.Waiting = defaultWaiting
	}
	if o.Wait <= 0 {
		o.Wait = defaultWait
	}
	if o.Lease <= 0 {
		o.Lease = defaultLease
	}
	return &Gate{o: o, queues: make(map[string][]*ticket)}
}

// Enter returns once the project has a place, which leave gives back; it may be called twice. It fails with
// fault.Exhausted where there would be none in time, and with ctx's error when that ends.
func (g *Gate) Enter(ctx context.Context, project string) (leave func(), err error) {
	g.mu.Lock()
	if g.taken < g.o.AtOnce && g.waiting == 0 {
		g.taken++
		g.mu.Unlock()
		return g.place(), nil
	}
	own := g.queues[project]
	wait := g.expectedLocked(g.waiting)
	if g.waiting >= g.o.Waiting || len(own) >= max(g.o.Waiting/2, 1) || wait > g.o.Wait {
		g.refused++
		g.mu.Unlock()
		return nil, g.refusal(wait)
	}
	t := &ticket{make(chan struct{})}
	if len(own) == 0 {
		g.turns = append(g.turns, project)
	}
	g.queues[project] = append(own, t)
	g.waiting++
	g.mu.Unlock()
	late := time.NewTimer(2 * g.o.Wait)
	defer late.Stop()
	select {
	case <-t.admitted:
		return g.place(), nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-late.C:
		err = g.refusal(g.o.Wait)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-t.admitted: // at the same time
		return g.place(), nil
	default:
	}
	g.dropLocked(project, t)
	if ctx.Err() == nil {
		g.refused++
	}
	return nil, err
}

// expectedLocked is how long one waits that has so many before it.
func (g *Gate) expectedLocked(before int) time.Duration {
	return time.Duration(int64(before+1) * int64(g.held) / int64(g.o.AtOnce))
}

// place is one that is taken.
type place struct {
	gate  *Gate
	began time.Time
	lease *time.Timer
	over  atomic.Bool
}

// place returns what gives back a place that is taken.
func (g *Gate) place() (leave func()) {
	p := &place{gate: g, began: time.Now()}
	p.lease = time.AfterFunc(g.o.Lease, p.end)
	return p.leave
}

func (p *place) leave() {
	p.lease.Stop()
	p.end()
}

func (p *place) end() {
	if p.over.CompareAndSwap(false, true) {
		p.gate.leave(time.Since(p.began))
	}
}

func (g *Gate) leave(held time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held += (held - g.held) / 16
	if g.waiting == 0 {
		g.taken--
		return
	}
	project := g.turns[0]
	t := g.queues[project][0]
	g.dropLocked(project, t)
	close(t.admitted) // the place is its own
}

// dropLocked takes a ticket out of its project's queue, which comes last in the turns then.
func (g *Gate) dropLocked(project string, t *ticket) {
	q := g.queues[project]
	for i := range q {
		if q[i] == t {
			q = append(q[:i:i], q[i+1:]...)
			break
		}
	}
	g.waiting--
	for i := range g.turns {
		if g.turns[i] == project {
			g.turns = append(g.turns[:i:i], g.turns[i+1:]...)
			break
		}
	}
	if len(q) == 0 {
		delete(g.queues, project)
		return
	}
	g.queues[project] = q
	g.turns = append(g.turns, project)
}

func (g *Gate) refusal(wait time.Duration) error {
	e := fault.New(fault.Exhausted, "the server begins %d %s at a time, and as many wait as can in %v", g.o.AtOnce, g.o.What, g.o.Wait).
		WithRemedy("send it again in a while, as Retry-After says, or fewer at once; nothing was begun")
	e.Busy, e.Retry = true, min(max(wait, time.Second), time.Minute)
	return e
}

// Figures is how a gate stands.
type Figures struct {
	Taken, Waiting int
	Refused        int64 // since it was made
}

// Figures returns how the gate stands.
func (g *Gate) Figures() Figures {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Figures{g.taken, g.waiting, g.refused}
}
