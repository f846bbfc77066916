// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package alarm says when something is to be looked at next, and notices that the host's clock was
// set. It knows ids, and not what is looked at.
package alarm

import (
	"container/heap"
	"sync"
	"time"

	"sandpit.dev/sandbox"
)

const (
	// tick is how often the host's clock is to be looked at.
	tick = time.Minute
	// Jump is how far the host's clock has to go astray between two looks to count as set.
	Jump = 5 * time.Second
	// A wait that ends Jump later than it should was of a server that was stopped, or had no
	// processor. So the clock is waited for at most pulse while an alarm comes within tick.
	pulse = 2 * time.Second
)

// Clock has at most one alarm for each id. It is safe for concurrent use.
type Clock struct {
	mu    sync.Mutex
	heap  alarms
	byID  map[sandbox.ID]*alarm
	wakes chan struct{} // the first alarm changed
}

type alarm struct {
	at    time.Time
	id    sandbox.ID
	index int
}

// New returns a clock without alarms.
func New() *Clock {
	return &Clock{byID: make(map[sandbox.ID]*alarm), wakes: make(chan struct{}, 1)}
}

// Set makes at the time of the alarm of id; the zero time means never.
func (c *Clock) Set(id sandbox.ID, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.byID[id]
	switch {
	case at.IsZero() && a == nil:
		return
	case at.IsZero():
		heap.Remove(&c.heap, a.index)
		delete(c.byID, id)
		return
	case a == nil:
		a = &alarm{at: at, id: id}
		c.byID[id] = a
		heap.Push(&c.heap, a)
	default:
		a.at = at
		heap.Fix(&c.heap, a.index)
	}
	if a.index == 0 {
		select {
		case c.wakes <- struct{}{}:
		default:
		}
	}
}

// Changed receives a value after the first alarm has changed.
func (c *Clock) Changed() <-chan struct{} { return c.wakes }

// Len counts the alarms.
func (c *Clock) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.heap)
}

// Shift puts every alarm off by d, or brings it forward.
func (c *Clock) Shift(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.heap { // which changes no order
		a.at = a.at.Add(d)
	}
}

// Due takes out an alarm that has come, if any, and else says when to ask again:
// soon, since the host's clock may be set meanwhile.
func (c *Clock) Due(at time.Time) (id sandbox.ID, ok bool, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.heap) == 0 {
		return "", false, tick
	}
	a := c.heap[0]
	if d := a.at.Sub(at); d > tick {
		return "", false, tick
	} else if d > 0 {
		return "", false, min(d, pulse)
	}
	heap.Pop(&c.heap)
	delete(c.byID, a.id)
	return a.id, true, 0
}

type alarms []*alarm

func (h alarms) Len() int           { return len(h) }
func (h alarms) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *alarms) Push(x any) {
	a := x.(*alarm)
	a.index = len(*h)
	*h = append(*h, a)
}
func (h *alarms) Pop() any {
	old := *h
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return a
}
