// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// bufferSize is of one read: some 500 events, which the group's lock is held for.
const bufferSize = 64 << 10

// isRead reports whether the queue is empty and all that was in it is with its source.
func (g *Group) isRead() bool {
	if !g.reading.TryLock() {
		return false
	}
	defer g.reading.Unlock()
	return g.fd < 0 || !queued(g.fd)
}

// queued reports whether a queue has an event. FIONREAD would go through all of it.
func queued(fd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err != nil || n > 0
}

// read hands what was queued before the call to the sources, and returns how many events
// that were. A sandbox that goes on making events cannot hold it up: it takes as many as
// there were. Where those are more than the backlog's bound, the sandbox with most of
// them is paused.
func (g *Group) read() (events int) {
	g.reading.Lock()
	defer g.reading.Unlock()
	events, empty := g.readOnce()
	if empty {
		return events
	}
	left, err := unix.IoctlGetInt(g.fd, unix.TIOCINQ) // also named FIONREAD
	if err != nil {
		left = 1 << 30
	}
	left /= unix.FAN_EVENT_METADATA_LEN // the kernel counts a bare header for each
	if left > g.backlog {
		g.counts = make(map[*Source]int)
		defer g.pauseLoudest()
	}
	for left > 0 && !empty {
		var n int
		n, empty = g.readOnce()
		events, left = events+n, left-n
	}
	return events
}

// readOnce fills the buffer once. The caller holds reading.
func (g *Group) readOnce() (events int, empty bool) {
	if g.fd < 0 {
		return 0, true
	}
	n, err := unix.Read(g.fd, g.buf)
	switch {
	case errors.Is(err, unix.EINTR):
		return 0, false
	case errors.Is(err, unix.EAGAIN):
		return 0, true
	case err != nil:
		g.log.Error("cannot read file events; open windows are incomplete", "error", err)
		g.loseAll(fmt.Errorf("cannot read file events: %w", err))
		return 0, true
	}
	// The kernel stops short of a full buffer only when the queue is empty.
	return g.sort(g.buf[:n], time.Now()), len(g.buf)-n > maxRecord
}

// sort hands each event to the source it is of, uninterpreted; neighbours of one source
// at once.
func (g *Group) sort(b []byte, at time.Time) (events int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(b) > 0 {
		size, id, overflow, ok := peek(b)
		n := 1
		switch {
		case !ok:
			g.log.Error("the kernel sent a file event that cannot be read; open windows are incomplete")
			g.loseAllLocked(errors.New("the kernel sent a file event that cannot be read"))
			return events
		case overflow:
			g.log.Warn("the kernel dropped file events; open windows are incomplete")
			g.loseAllLocked(errors.New("the kernel dropped file events"))
		default:
			for size < len(b) {
				more, next, overflow, ok := peek(b[size:])
				if !ok || overflow || next != id {
					break
				}
				size, n = size+more, n+1
			}
			if s := g.sources[id]; s != nil {
				s.receive(b[:size], n, at)
				if g.counts != nil {
					g.counts[s] += n
				}
			}
		}
		b, events = b[size:], events+n
	}
	return events
}

func (g *Group) loseAll(reason error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.loseAllLocked(reason)
}

func (g *Group) loseAllLocked(reason error) {
	for _, s := range g.sources {
		s.lose(reason, 1) // how many is not known
	}
}

// pauseLoudest pauses the source that had most events of this read-out. The caller holds reading.
func (g *Group) pauseLoudest() {
	var loudest *Source
	for s, n := range g.counts {
		if loudest == nil || n > g.counts[loudest] {
			loudest = s
		}
	}
	g.counts = nil
	if loudest != nil {
		g.log.Warn("a sandbox changes files faster than that can be read; its changes are not told for a while",
			"pause", pause)
		loudest.pause(time.Now())
	}
}
