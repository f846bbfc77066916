// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"context"
	"errors"
	"runtime"
	"time"
)

const (
	// maxBacklog bounds, in bytes, what was read of one source's events and is not booked
	// yet, and maxBacklogs that of all: some 100,000 events, and 400,000. A source may hold
	// no more than is free, so that many that hold much leave each other, and one that
	// begins, an equal share.
	maxBacklog  = 16 << 20
	maxBacklogs = 64 << 20
	// bookTurn is how many events are booked, or told, before other goroutines get a turn:
	// some 100 µs.
	bookTurn = 32
)

// backlog is what was read of a source's events and is not booked yet. The group's lock
// guards it.
type backlog struct {
	open   bool // somebody needs the events
	events []byte
	reads  []portion
	lost   error // after the events, some are missing
	missed int   // at least as many
	held   int   // bytes that count against the bounds: these, and those being booked
}

// portion is the events of one read.
type portion struct {
	end int // in the backlog's events
	at  time.Time
}

func (b *backlog) empty() bool { return len(b.events) == 0 && b.lost == nil }

// receive adds n events to the backlog. What does not fit is lost. The group's lock is held.
func (s *Source) receive(events []byte, n int, at time.Time) {
	g, b := s.g, &s.backlog
	if !b.open {
		return
	}
	if b.held+len(events) > min(g.maxBacklog, g.maxBacklogs-g.pending) || b.lost != nil {
		s.lose(errors.New("the sandbox changes files faster than they can be told"), n)
		return
	}
	b.events = append(b.events, events...)
	if last := len(b.reads) - 1; last >= 0 && b.reads[last].at.Equal(at) {
		b.reads[last].end = len(b.events)
	} else {
		b.reads = append(b.reads, portion{len(b.events), at})
	}
	b.held += len(events)
	g.pending += len(events)
	s.markUnread()
}

// lose says that events are missing from here on. The group's lock is held.
func (s *Source) lose(reason error, n int) {
	if b := &s.backlog; b.open {
		if b.lost == nil {
			b.lost = reason
		}
		b.missed += n
		s.markUnread()
	}
}

func (s *Source) markUnread() {
	if !s.unread {
		s.unread = true
		s.g.unread = append(s.g.unread, s)
	}
}

// bookAll books until nothing is left, on a goroutine of its own.
func (s *Source) bookAll(ctx context.Context) {
	g := s.g
	for {
		s.mu.Lock()
		s.bookLocked()
		s.mu.Unlock()
		g.mu.Lock()
		if s.backlog.empty() || ctx.Err() != nil {
			s.booking = false
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
	}
}

// bookLocked books the backlog in all windows and watches. Who holds the lock afterwards
// knows of all events that were read before.
func (s *Source) bookLocked() {
	g := s.g
	g.mu.Lock()
	b := s.backlog
	s.backlog = backlog{open: b.open, held: b.held}
	g.mu.Unlock()
	if b.empty() {
		return
	}
	from, n := 0, 0
	for _, p := range b.reads {
		for rest := b.events[from:p.end]; len(rest) > 0; n++ {
			if n%bookTurn == bookTurn-1 {
				runtime.Gosched() // they are one sandbox's
			}
			var r record
			var ok bool
			if r, rest, ok = parse(rest); !ok {
				b.lost = errors.New("the kernel sent a file event that cannot be read")
				break
			}
			s.bookOneLocked(&r, p.at)
		}
		from = p.end
	}
	if b.lost != nil {
		s.loseLocked(b.lost, max(b.missed, 1))
	}
	for _, w := range s.watches {
		if len(w.queue) > 0 || w.dropped > 0 {
			w.poke()
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s.backlog.held -= len(b.events)
	g.pending -= len(b.events)
}

func (s *Source) bookOneLocked(r *record, at time.Time) {
	for _, t := range s.trackers {
		t.window.apply(r)
	}
	if len(s.watches) > 0 {
		s.queueLocked(r, at)
	}
	s.ignoreRepeatedLocked(r)
}

// loseLocked tells all windows and watches that n events or more are missing.
func (s *Source) loseLocked(reason error, n int) {
	for _, t := range s.trackers {
		t.window.lost.because(reason)
	}
	for _, w := range s.watches {
		w.dropped += n
		w.poke()
	}
}

// openBacklog begins to keep the source's events, and closeBacklog ends it and forgets
// those that are not booked.
func (s *Source) openBacklog() {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	s.backlog.open = true
}

func (s *Source) closeBacklog() {
	g, b := s.g, &s.backlog
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pending -= len(b.events)
	*b = backlog{held: b.held - len(b.events)}
}
