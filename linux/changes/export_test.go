// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"time"

	"golang.org/x/sys/unix"
)

// OpenLimited is Open with the kernel's bounded queue, which can be made to overflow.
func OpenLimited(o Options) (*Group, error) { return open(o, 0) }

// Open returns how many windows and watches are open and whether the overlay is watched.
func (s *Source) Open() (windows int, watched bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set, _ := s.mark.look()
	return len(s.trackers) + len(s.watches), set
}

// EndPauseIn has the pause of a source that is not watched last so long from now.
func (s *Source) EndPauseIn(d time.Duration) {
	s.mark.mu.Lock()
	defer s.mark.mu.Unlock()
	s.mark.paused = time.Now().Add(d)
}

// Running reports whether Run has begun.
func (g *Group) Running() bool { return g.runs() }

// Drain reads what is queued and has it booked, as the reader does at any time, and gives
// how much it was.
func (s *Source) Drain() int {
	all := 0
	for n := 1; n > 0; all += n {
		n = s.g.read()
	}
	for _, o := range s.g.all() {
		o.mu.Lock()
		o.bookLocked()
		o.mu.Unlock()
	}
	return all
}

// Named reads what is queued, gives how many records of mask there are, and how many of
// them say which file they are about.
func (g *Group) Named(mask uint64) (named, all int) {
	g.reading.Lock()
	defer g.reading.Unlock()
	n, err := unix.Read(g.fd, g.buf)
	if err != nil {
		return 0, 0
	}
	for b := g.buf[:n]; len(b) > 0; {
		r, rest, ok := parse(b)
		if !ok {
			break
		}
		if b = rest; r.has(mask) {
			if all++; r.target != nil {
				named++
			}
		}
	}
	return named, all
}

// ParseAll parses a whole buffer.
func ParseAll(b []byte) (n int) {
	for len(b) > 0 {
		_, rest, ok := parse(b)
		if !ok {
			break
		}
		b = rest
		n++
	}
	return n
}

// Take is a Next that does not wait.
func (w *Watch) Take() ([]Event, error) {
	w.next.Lock()
	defer w.next.Unlock()
	return w.take()
}

// Queue returns the descriptor that events are read from.
func (g *Group) Queue() int { return g.fd }

// ListenTo has the reader wait for the events of another descriptor.
func (g *Group) ListenTo(fd int) { g.waker.queue = fd }

// Bounds of ignored files.
const (
	MaxIgnored     = maxIgnored
	MaxIgnoredEach = maxIgnoredEach
)

// Hold takes the source's lock, as booking does for as long as the sandbox's disk takes.
func (s *Source) Hold() (release func()) {
	s.mu.Lock()
	return s.mu.Unlock
}

// HoldReading keeps the queue from being read.
func (g *Group) HoldReading() (release func()) {
	g.reading.Lock()
	return g.reading.Unlock
}

// Booked is how many events wait for Next.
func (w *Watch) Booked() int {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return len(w.queue)
}

// BoundBacklogs sets the bounds of what is read and not booked, in bytes.
func (g *Group) BoundBacklogs(one, all int) { g.maxBacklog, g.maxBacklogs = one, all }

// Pending is how many bytes are read and not booked.
func (g *Group) Pending() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pending
}
