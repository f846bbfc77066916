// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"
)

// flight is one call on its way.
type flight struct {
	id        json.RawMessage
	method    string
	modern    bool
	cancel    context.CancelFunc
	cancelled atomic.Bool   // by the client, which wants no answer any more
	sent      chan struct{} // closed when the server may have it
	sentOnce  sync.Once
	answered  chan struct{} // closed when the server's answer came; by the flight's goroutine only
	done      chan struct{} // closed at the end
}

func (f *flight) wasSent() bool {
	select {
	case <-f.sent:
		return true
	default:
		return false
	}
}

// take handles one line of the client.
func (b *bridge) take(ctx context.Context, data []byte) {
	data = bytes.TrimSpace(data)
	if data[0] == '[' {
		b.out.write(errorReply(nil, codeInvalid, "batches are not taken; send each message on a line of its own"))
		return
	}
	m, err := parse(data)
	if err != nil {
		b.out.write(errorReply(nil, codeParse, "the line is not a JSON-RPC message: "+err.Error()))
		return
	}
	switch {
	case m.isCall():
		b.launch(ctx, m, data)
	case m.Method == methodCancelled:
		b.cancelled(ctx, m, data)
	case m.Method == "" && !m.hasID():
		b.out.write(errorReply(nil, codeInvalid, "the message has neither a method nor an id"))
	default:
		b.notice(ctx, m, data)
	}
}

// notice passes what gets no answer: a notification, or the client's answer. The
// next message waits for it, so that order is kept.
func (b *bridge) notice(ctx context.Context, m *message, data []byte) {
	ctx, cancel := context.WithTimeout(ctx, noticeBound)
	defer cancel()
	if err := b.exchange(ctx, nil, m, data); err != nil {
		b.log.Warn("a notification was not delivered", "method", m.Method, "error", err)
	}
	if m.Method == methodReady && m.version() == "" {
		b.listen()
	}
}

// launch sends a call without waiting for it, except for the first of a session: what comes after
// it needs the session.
func (b *bridge) launch(run context.Context, m *message, data []byte) {
	ctx, cancel := context.WithCancel(run)
	f := &flight{
		id: m.ID, method: m.Method, modern: m.version() != "", cancel: cancel,
		sent: make(chan struct{}), answered: make(chan struct{}), done: make(chan struct{}),
	}
	k := key(m.ID)
	b.mu.Lock()
	_, taken := b.flights[k]
	full := len(b.flights) >= maxInFlight
	if !taken && !full {
		b.flights[k] = f
	}
	b.mu.Unlock()
	switch {
	case taken:
		cancel()
		b.out.write(errorReply(m.ID, codeInvalid, "a call with this id is in progress"))
		return
	case full:
		cancel()
		b.out.write(errorReply(m.ID, codeLost, "too many calls are in progress"))
		return
	}
	fly := func() {
		defer func() {
			if run.Err() == nil { // else it may be among those that are left, see part
				b.land(f)
			}
			close(f.done)
			cancel()
		}()
		if err := b.exchange(ctx, f, m, data); err != nil && !f.cancelled.Load() {
			b.log.Warn("a call failed", "method", m.Method, "error", err)
			b.out.write(errorReply(m.ID, codeLost, err.Error()))
		}
	}
	if m.Method == methodInitialize {
		fly()
		return
	}
	b.wg.Go(fly)
}

// land takes a call out of those in progress. Calling it twice is fine.
func (b *bridge) land(f *flight) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := key(f.id); b.flights[k] == f {
		delete(b.flights, k)
	}
}

// How a cancellation is pursued in the old era, where it is a message of its own
// and may overtake the call on another connection.
const (
	cancelAgain = 300 * time.Millisecond
	cancelTries = 3
	cancelBound = 10 * time.Second
)

// cancelled ends a call that the client does not want any more.
func (b *bridge) cancelled(ctx context.Context, m *message, data []byte) {
	b.mu.Lock()
	f := b.flights[key(m.Params.RequestID)]
	b.mu.Unlock()
	if f == nil {
		return // it was answered before
	}
	f.cancelled.Store(true)
	if f.modern || !f.wasSent() {
		// In the new era the end of the request is the message. And what was not
		// sent need not be; if it is just being sent, see below.
		f.cancel()
		if f.modern {
			return
		}
	}
	b.wg.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, cancelBound)
		defer cancel()
		select {
		case <-f.sent:
		case <-f.done:
			if !f.wasSent() {
				return
			}
		case <-ctx.Done():
			return
		}
		again := time.NewTicker(cancelAgain)
		defer again.Stop()
		for range cancelTries {
			if err := b.exchange(ctx, nil, m, data); err != nil {
				b.log.Warn("a cancellation was not delivered", "error", err)
			}
			select {
			case <-f.answered:
				return
			case <-again.C:
			case <-ctx.Done():
			}
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			f.cancel() // the server does not say that it ended; no caller waits for it
		}
	})
}
