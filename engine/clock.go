// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// clock knows when each sandbox is to be looked at next: a heap, one entry a
// sandbox. A use moves nothing in it: what is due is worked out from the record
// and the last use when the time comes, and the entry put off if it is too early.
type clock struct {
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

func newClock() *clock {
	return &clock{byID: make(map[sandbox.ID]*alarm), wakes: make(chan struct{}, 1)}
}

// set makes at the time to look at the sandbox; the zero time means never.
func (c *clock) set(id sandbox.ID, at time.Time) {
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

func (c *clock) drop(id sandbox.ID) { c.set(id, time.Time{}) }

// due takes out an alarm that has come, if any, and else says when to ask again.
func (c *clock) due(at time.Time) (id sandbox.ID, ok bool, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.heap) == 0 {
		return "", false, time.Hour
	}
	a := c.heap[0]
	if d := a.at.Sub(at); d > 0 {
		return "", false, min(d, time.Hour)
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

const (
	// retryAfter is when work that could not be finished is tried again.
	retryAfter = 30 * time.Second
	// atOnce bounds how many sandboxes the clocks stop or delete at a time, so
	// that a thousand that were started together do not end together.
	atOnce = 4
)

// runClock looks at each sandbox when its time comes, until ctx is done.
func (e *Engine) runClock(ctx context.Context) {
	slots := make(chan struct{}, atOnce)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		id, ok, wait := e.clock.due(now())
		if !ok {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-e.clock.wakes:
			case <-ctx.Done():
				return
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		e.group.spawn(func(ctx context.Context) {
			defer func() { <-slots }()
			e.strike(ctx, id)
		})
	}
}

// strike does what is due with a sandbox, and plans its next alarm.
func (e *Engine) strike(ctx context.Context, id sandbox.ID) {
	b, err := e.acquire(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return
	}
	if err != nil {
		e.clock.set(id, now().Add(retryAfter))
		return
	}
	defer e.release(b)
	if ctx.Err() != nil {
		return
	}
	wctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopBound+deleteBound+e.defaults.StopGrace)
	defer cancel()
	// A verb may have the turn for a while; the clock must not stand still for it.
	if err := b.turn.take(ctx); err != nil {
		return
	}
	defer b.turn.give()
	if err = e.outcomes.wait(wctx, b); err == nil {
		err = e.settle(wctx, b, "finished after an earlier failure")
	}
	if err == nil {
		err = e.strikeLocked(wctx, b, now())
	}
	if err != nil {
		e.log.Error("what a clock or a repair asks for cannot be done now; it is tried again", "sandbox", id, "error", err)
		e.later(b)
		return
	}
	e.plan(b)
}

// strikeLocked stops or deletes the sandbox if that is due. The caller has the turn.
func (e *Engine) strikeLocked(ctx context.Context, b *box, at time.Time) error {
	s := b.record.Load()
	if s == nil {
		return nil
	}
	switch {
	case !s.ExpiresAt.IsZero() && !at.Before(s.ExpiresAt):
		return e.reap(ctx, b, sandbox.CauseTTL, "its time to live passed at "+s.ExpiresAt.UTC().Format(time.RFC3339))
	case s.State == sandbox.Stopped && s.Retention > 0 && !at.Before(s.StoppedAt.Add(s.Retention)):
		return e.reap(ctx, b, sandbox.CauseRetain, "it was stopped for "+seconds(s.Retention)+" seconds")
	case s.State == sandbox.Running && s.IdleTimeout > 0:
		return e.stop(ctx, b, system, sandbox.CauseIdle, "it was idle for "+seconds(s.IdleTimeout)+" seconds",
			func(busy int, last time.Time) bool { return busy == 0 && !at.Before(e.idleAt(s, last)) })
	}
	return nil
}

// reap deletes a sandbox because a clock struck.
func (e *Engine) reap(ctx context.Context, b *box, cause sandbox.Cause, detail string) error {
	err := e.remove(ctx, b, system, cause, detail)
	if err == nil {
		e.metrics.reaped.Inc()
	}
	return err
}

// idleAt is when a sandbox without any use since last is idle for too long.
func (e *Engine) idleAt(s *sandbox.Sandbox, last time.Time) time.Time {
	return later(later(later(s.LastActivity, s.StartedAt), last), e.since).Add(s.IdleTimeout)
}

// plan sets the sandbox's next alarm from its record and its last use.
func (e *Engine) plan(b *box) {
	s := b.record.Load()
	if s == nil {
		e.clock.drop(b.id)
		return
	}
	b.mu.Lock()
	busy, last := b.busy, b.last
	b.mu.Unlock()
	at := s.ExpiresAt
	switch {
	case s.State == sandbox.Running && s.IdleTimeout > 0:
		if busy > 0 {
			last = now() // the earliest at which it can become idle
		}
		at = earlier(at, e.idleAt(s, last))
	case s.State == sandbox.Stopped && s.Retention > 0:
		at = earlier(at, s.StoppedAt.Add(s.Retention))
	case s.State.Intent():
		at = now().Add(retryAfter)
	}
	e.clock.set(b.id, at)
}

// later has the clock look at a sandbox whose last verb could not be finished.
func (e *Engine) later(b *box) { e.clock.set(b.id, now().Add(retryAfter)) }

// now is the time as the store keeps it, so that a record reads the same before
// and after it was stored.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// earlier is the first of two times, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
