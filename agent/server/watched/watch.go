// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package watched

import (
	"context"

	"sandpit.dev/agent/wire"
)

// Bounds of what waits for those who read.
const (
	maxQueue  = 8192      // events of one watch
	maxBytes  = 1 << 20   // of those
	allBytes  = 4 << 20   // of the events of all watches; one that several tell is there once
	eventCost = 112       // bytes beside those of the paths
	itemBytes = 128 << 10 // of paths in one answer
)

// event is one change, which several watches tell.
type event struct {
	kind       string
	path, from string
	exchange   bool
	dir        bool
	holders    int // watches in whose queue it is
}

func (e *event) cost() int { return eventCost + len(e.path) + len(e.from) }

// Watch is one watch. Next is for one goroutine.
type Watch struct {
	h         *Hub
	l         *live
	dir       string
	recursive bool
	wake      chan struct{} // one word: look at the queue

	// guarded by h.mu
	top     *node
	start   int64 // position from which on events are for it
	queue   []*event
	bytes   int
	dropped int
	ended   error
}

// queueEvent appends an event, if there is room.
func (w *Watch) queueEvent(e *event) {
	l := w.l
	if w.ended != nil || l.pos <= w.start {
		return
	}
	if n := len(w.queue); n > 0 && w.dropped == 0 && e.from == "" && (e.kind == wire.Modified || e.kind == wire.Attributes) {
		if last := w.queue[n-1]; last.kind == e.kind && last.path == e.path {
			return // it says the same again
		}
	}
	cost := e.cost()
	grows := 0
	if e.holders == 0 {
		grows = cost
	}
	if w.dropped > 0 || len(w.queue) >= maxQueue || w.bytes+cost > maxBytes || l.queued+grows > allBytes {
		w.lose(1) // once one is missing, what follows would be misread without it
		return
	}
	e.holders++
	l.queued += grows
	w.bytes += cost
	w.queue = append(w.queue, e)
	w.poke()
}

// lose counts events that are missing.
func (w *Watch) lose(n int) {
	if w.ended == nil {
		w.dropped += n
		w.poke()
	}
}

// end ends the watch; the first reason holds.
func (w *Watch) end(why error) {
	if w.ended == nil {
		w.ended = why
		w.poke()
	}
}

// clear forgets what nobody will read.
func (w *Watch) clear() {
	for _, e := range w.queue {
		w.taken(e)
	}
	w.queue, w.dropped = nil, 0
}

func (w *Watch) taken(e *event) {
	w.bytes -= e.cost()
	if e.holders--; e.holders == 0 {
		w.l.queued -= e.cost()
	}
}

func (w *Watch) poke() {
	select {
	case w.wake <- struct{}{}:
	default: // it is told already
	}
}

// Close ends the watch. Calling it twice is fine.
func (w *Watch) Close() { w.h.end(w) }

// Next waits for events. After the last one it fails with why the watch ended.
func (w *Watch) Next(ctx context.Context) ([]wire.FileEvent, error) {
	for {
		w.h.mu.Lock()
		events, err := w.take()
		w.h.mu.Unlock()
		if len(events) > 0 || err != nil {
			return events, err
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take returns some of the queued events.
func (w *Watch) take() (events []wire.FileEvent, err error) {
	size, n := 0, 0
	for ; n < len(w.queue) && n < wire.MaxFileEvents && size < itemBytes; n++ {
		e := w.queue[n]
		size += len(e.path) + len(e.from)
		events = append(events, wire.FileEvent{
			Type: e.kind, Path: wire.EscapeName(e.path), From: wire.EscapeName(e.from), Exchange: e.exchange, Dir: e.dir,
		})
		w.taken(e)
	}
	clear(w.queue[:n])
	if w.queue = w.queue[n:]; len(w.queue) > 0 {
		return events, nil
	}
	w.queue = nil
	if w.dropped > 0 {
		events = append(events, wire.FileEvent{Type: wire.Dropped, Dropped: w.dropped})
		w.dropped = 0
	}
	if len(events) == 0 {
		err = w.ended
	}
	return events, err
}
