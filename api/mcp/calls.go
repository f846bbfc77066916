// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"sync"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

// Why a call was ended from outside of it.
var (
	errStopping     = error(fault.New(fault.Unavailable, "the server is stopping"))
	errSessionEnded = errors.New("the session was ended")
)

// calls are those in progress. The SDK waits for them when a session ends, and
// ends none.
type calls struct {
	mu      sync.Mutex
	stopped bool
	cancel  map[*call]context.CancelCauseFunc
	posts   int           // requests that wait for answers
	idle    chan struct{} // closed when there are none; nil: nobody waits for that
}

func newCalls() *calls { return &calls{cancel: make(map[*call]context.CancelCauseFunc)} }

// begin takes a call in; done lets it out. After stop it is cancelled at once.
func (cs *calls) begin(ctx context.Context, c *call) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.stopped {
		cancel(errStopping)
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
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c, cancel := range cs.cancel {
		if session != "" && c.session == session && identity(c.caller) == identity(caller) {
			cancel(errSessionEnded)
		}
	}
}

// post notes a request that waits for answers, until done.
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

// stop cancels all, and all that come. What it gives is closed when all are
// answered.
func (cs *calls) stop() (idle <-chan struct{}) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.stopped = true
	for _, cancel := range cs.cancel {
		cancel(errStopping)
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
