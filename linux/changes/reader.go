// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"context"
	"errors"
	"sync"
	"time"

	"sandpit.dev/fault"
)

const (
	// pace is how long the reader lets events gather. Each wake-up takes a core
	// from the sandbox that causes it; a Stop has the reader read at once what came
	// since. Someone waits for the events of a watch.
	//
	// What gathers is merged by the kernel, and merged events of a rename tell less of what
	// it replaced (see [diff.resolveRenames]): more lists would not be complete. 5 ms save work with many
	// files 1 to 3 %.
	pace      = time.Millisecond
	watchPace = 5 * time.Millisecond
	// maxBehind bounds how long a command's begin or end waits for the reader, which
	// needs a microsecond for an event.
	maxBehind = time.Second
)

// reader is one Run of a group: the one goroutine that reads the kernel's queue. It only
// sorts the events by their sandbox; what they mean is worked out behind it, by one
// goroutine for each sandbox that has any, and by that sandbox's own commands.
type reader struct {
	g       *Group
	asks    chan chan struct{} // to read what is queued now; each is closed when that is done
	ended   chan struct{}      // closed when it reads no more
	listen  chan struct{}      // one word: tell of the next event
	rang    chan error         // the answer
	working sync.WaitGroup
}

// Run reads events while windows are open, so that the kernel's queue stays
// short, and takes watches away that linger. It returns nil when ctx is done or
// the group is closed. Windows work without it; then the queue grows until a
// Stop, which reads it itself, and nothing lingers. One Run at a time.
func (g *Group) Run(ctx context.Context) error {
	r := &reader{
		g: g, asks: make(chan chan struct{}), ended: make(chan struct{}),
		listen: make(chan struct{}, 1), rang: make(chan error),
	}
	g.mu.Lock()
	if g.closed || g.reader != nil {
		g.mu.Unlock()
		return fault.New(fault.State, "the group is closed or already runs")
	}
	g.reader = r
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.reader = nil
		g.mu.Unlock()
		g.sweep(time.Now().Add(g.linger)) // nothing would take them away later
	}()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	woken := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(woken)
		g.waker.wake()
	})
	defer func() {
		<-woken // cancel ran by now
		g.waker.reset()
	}()
	defer r.working.Wait()
	r.working.Go(func() { g.expire(ctx) })
	r.working.Go(func() { r.hear(ctx) })
	defer cancel()
	defer close(r.ended)
	r.run(ctx)
	return nil
}

// hear waits for the first event whenever it is asked to.
func (r *reader) hear(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.listen:
		}
		err := r.g.waker.wait()
		select {
		case <-ctx.Done():
			return
		case r.rang <- err:
		}
	}
}

// run reads the queue when its first event came, after a pace, and when somebody asks.
func (r *reader) run(ctx context.Context) {
	g := r.g
	timer := time.NewTimer(0)
	defer timer.Stop()
	ticking, listening := true, false
	tick := func(d time.Duration) {
		if !ticking {
			ticking = true
			timer.Reset(d)
		}
	}
	var asked []chan struct{}
	for {
		select {
		case <-ctx.Done():
			return
		case one := <-r.asks:
			asked = append(asked[:0], one)
			for more := true; more; {
				select {
				case one := <-r.asks:
					asked = append(asked, one)
				default:
					more = false
				}
			}
			g.read()
			for _, one := range asked {
				close(one)
			}
			if g.hasUnread() { // who asked books its own; others' come with the next pace
				tick(g.pace())
			}
		case err := <-r.rang:
			listening = false
			switch {
			case err == nil:
				// After the first event, too: most commands end before, and their Stop has it read.
				tick(g.pace())
			case g.isClosed():
				return
			case ctx.Err() == nil:
				// The kernel has no room for it now. What is queued is read all the same.
				g.log.Warn("cannot wait for file events; looking for them every second", "error", err)
				tick(time.Second)
			}
		case <-timer.C:
			ticking = false
			n := g.read()
			r.book(ctx)
			switch {
			case n > 0:
				tick(g.pace())
			case !listening:
				listening = true
				r.listen <- struct{}{}
			}
		}
	}
}

// book has the events booked that were read.
func (r *reader) book(ctx context.Context) {
	g := r.g
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.unread {
		s.unread = false
		if !s.booking && !s.backlog.empty() {
			s.booking = true
			r.working.Go(func() { s.bookAll(ctx) })
		}
	}
	clear(g.unread)
	g.unread = g.unread[:0]
}

// pace is how long the reader lets events gather.
func (g *Group) pace() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.watches > 0 {
		return watchPace
	}
	return pace
}

func (g *Group) hasUnread() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.unread) > 0
}

// catchUp returns once all that was queued before the call is in the backlogs of its
// sources, and false where that takes too long. The caller holds no lock.
func (g *Group) catchUp() bool {
	if g.isRead() {
		return true
	}
	g.mu.Lock()
	r := g.reader
	g.mu.Unlock()
	if r == nil {
		g.read()
		return true
	}
	late := time.NewTimer(maxBehind)
	defer late.Stop()
	done := make(chan struct{})
	select {
	case r.asks <- done:
	case <-r.ended:
		g.read()
		return true
	case <-late.C:
		return false
	}
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}

// errBehind is why an answer lacks what was not read in time.
var errBehind = errors.New("the events of the sandbox's changes were not read in time")

// runs reports whether a reader does.
func (g *Group) runs() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reader != nil
}

// expire takes lingering watches away, and ends pauses.
func (g *Group) expire(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.idle:
		}
		for again := true; again; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(g.linger / 2):
			}
			again = g.sweep(time.Now())
		}
	}
}

// wakeExpiry has expire look at the sources.
func (g *Group) wakeExpiry() {
	select {
	case g.idle <- struct{}{}:
	default: // it is awake
	}
}
