// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

// Why a call was ended from outside of it.
var (
	// ErrStopping is the cause of the context of a call that the end of the server ends.
	ErrStopping     = error(fault.New(fault.Unavailable, "the server is stopping"))
	errSessionEnded = errors.New("the session was ended")
	errClientGone   = errors.New("the client went away and did not come back for the answer")
)

// calls are those in progress. The SDK waits for them when a session ends, and does not end them.
type calls struct {
	mu      sync.Mutex
	stopped bool
	cancel  map[*Call]context.CancelCauseFunc
	posts   int           // requests that wait for answers
	idle    chan struct{} // closed when no call is left; nil: not waited for
}

// of reports whether a call belongs to a session. One that became a task does not.
func (c *Call) of(session string) bool { return c.session == session && !c.Task.Begun() }

func newCalls() *calls { return &calls{cancel: make(map[*Call]context.CancelCauseFunc)} }

// begin adds a call; done removes it. After stop it is cancelled at once.
func (cs *calls) begin(ctx context.Context, c *Call) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.stopped {
		cancel(ErrStopping)
	}
	cs.cancel[c] = cancel
	return ctx, func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		delete(cs.cancel, c)
		cancel(nil)
	}
}

// end cancels the calls of a session, if it is the caller's.
func (cs *calls) end(session string, caller access.Caller) {
	who := Identity(caller)
	cs.cancelAll(errSessionEnded, func(c *Call) bool {
		return session != "" && c.of(session) && Identity(c.Caller) == who
	})
}

// abandon cancels the calls whose answers were to be delivered by d, which has had no reader
// since then. A task that the client knew of before goes on; one that began later is unknown to
// it and is cancelled.
func (cs *calls) abandon(d *delivery, since time.Time) {
	cs.cancelAll(errClientGone, func(c *Call) bool { return c.delivery == d && !c.Task.begunBefore(since) })
}

func (cs *calls) cancelAll(why error, of func(*Call) bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c, cancel := range cs.cancel {
		if of(c) {
			cancel(why)
		}
	}
}

// busy reports whether a session has calls in progress.
func (cs *calls) busy(session string) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c := range cs.cancel {
		if c.of(session) {
			return true
		}
	}
	return false
}

// delivered returns the delivery on a stream of a session of the caller's; nil if no call in
// progress has one.
func (cs *calls) delivered(session, stream string, caller access.Caller) *delivery {
	if stream == "" {
		return nil
	}
	who := Identity(caller)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c := range cs.cancel {
		if d := c.delivery; d != nil && c.of(session) && Identity(c.Caller) == who && d.streamID() == stream {
			return d
		}
	}
	return nil
}

// post registers a request that waits for answers, until done.
func (cs *calls) post() (done func()) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.posts++
	return func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		if cs.posts--; cs.posts == 0 && cs.idle != nil {
			close(cs.idle)
			cs.idle = nil
		}
	}
}

// stop cancels all calls, and all that come. idle is closed when all are answered.
func (cs *calls) stop() (idle <-chan struct{}) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.stopped = true
	for _, cancel := range cs.cancel {
		cancel(ErrStopping)
	}
	if cs.idle == nil {
		cs.idle = make(chan struct{})
	}
	waited := cs.idle
	if cs.posts == 0 {
		close(cs.idle)
		cs.idle = nil
	}
	return waited
}
