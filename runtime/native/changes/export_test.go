// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import "golang.org/x/sys/unix"

// OpenLimited is Open with the kernel's bounded queue, which can be made to overflow.
func OpenLimited(o Options) (*Group, error) { return open(o, 0) }

// Open gives how many windows and watches are open and whether the overlay is watched.
func (s *Source) Open() (windows int, watched bool) {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	return len(s.trackers) + len(s.watches), s.marked
}

// Running tells whether Run has begun.
func (g *Group) Running() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

// Drain books what is queued, as the reader does at any time, and gives how much it was.
func (s *Source) Drain() int {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	n, _ := s.g.drainLocked(1 << 20)
	return n
}

// Named reads what is queued, gives how many records of mask there are, and how many of
// them say which file they are about.
func (g *Group) Named(mask uint64) (named, all int) {
	g.mu.Lock()
	defer g.mu.Unlock()
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

// Queue gives the descriptor that events are read from.
func (g *Group) Queue() int { return g.fd }

// ListenTo has the reader wait for the events of another descriptor.
func (g *Group) ListenTo(fd int) { g.bell.queue = fd }

// Bounds of muted files.
const (
	MaxMuted     = maxMuted
	MaxMutedEach = maxMutedEach
)
