// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"path"
	"sync"
	"time"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/internal/printable"
	"sandpit.dev/sandbox"
)

// Watch begins a watch on the directory dir, absolute and inside, with all that is below it if recursive:
// all of it is told, whoever may read it. A missing directory is fault.NotFound, a file or one behind a link
// fault.Invalid, more than the agent can watch fault.Exhausted; an older agent is
// fault.Unsupported. ctx bounds the beginning only. Close the watch.
func (c *Client) Watch(ctx context.Context, dir string, recursive bool) (*Watch, error) {
	if !path.IsAbs(dir) {
		return nil, fault.InvalidField("path", "%q is not absolute", sandbox.Clip(dir, 200))
	}
	dir = path.Clean(dir)
	s, err := c.call(ctx, &wire.Request{Op: wire.OpWatch, Path: dir, Recursive: recursive}, nil)
	if err != nil {
		return nil, err
	}
	if !s.detach() {
		defer s.close()
		return nil, ctx.Err()
	}
	return &Watch{s: s, dir: wire.UnescapeName(dir)}, nil
}

// Watch tells of changes until Close. Its methods may be called concurrently.
type Watch struct {
	s   *stream
	dir string // bytes

	next sync.Mutex
	over error // for ever

	mu     sync.Mutex
	closed bool
}

// Next waits for events, and returns them in order. It fails when ctx is done, and after the last
// event with fault.NotFound when the directory is gone, with fault.State when the watch was closed,
// and with the error of the connection, fault.Unavailable, when that broke.
func (w *Watch) Next(ctx context.Context) ([]sandbox.FileEvent, error) {
	w.next.Lock()
	defer w.next.Unlock()
	if w.over != nil {
		return nil, w.over
	}
	told, ended := make(chan struct{}), false
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		_ = w.s.SetReadDeadline(time.Unix(1, 0))
	})
	events, err := w.read()
	if !stop() {
		<-told
		ended = true
		_ = w.s.SetReadDeadline(time.Time{})
	}
	switch {
	case err == nil:
		return events, nil
	case ended && isTimeout(err):
		return nil, ctx.Err() // what was read of a frame is kept
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over = err; w.closed {
		w.over = fault.New(fault.State, "the directory is no longer watched")
	}
	return nil, w.over
}

// read reads the next events that there are.
func (w *Watch) read() ([]sandbox.FileEvent, error) {
	for {
		t, p, err := w.s.r.Next()
		switch {
		case isTimeout(err):
			return nil, err
		case errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
			return nil, fault.New(fault.State, "the directory is no longer watched")
		case err != nil:
			return nil, w.s.failed(err)
		case t == wire.Failure:
			return nil, w.s.asFault(p)
		case t.Ignorable():
			continue
		case t != wire.Item:
			return nil, w.s.broken("a frame stands among events that is none")
		}
		var batch []wire.FileEvent
		if err := wire.Decode(p, &batch); err != nil {
			return nil, w.s.broken(err.Error())
		}
		if len(batch) > wire.MaxFileEvents+1 {
			return nil, w.s.broken("there are too many events in one answer")
		}
		events := make([]sandbox.FileEvent, 0, len(batch))
		at := time.Now() // the agent may have another clock
		for _, e := range batch {
			event, ok := w.event(e)
			if !ok {
				return nil, w.s.broken("an event is none")
			}
			event.At = at
			events = append(events, event)
		}
		if len(events) > 0 {
			return events, nil
		}
	}
}

// event checks an event.
func (w *Watch) event(e wire.FileEvent) (out sandbox.FileEvent, ok bool) {
	out = sandbox.FileEvent{Type: sandbox.FileEventType(e.Type), Exchange: e.Exchange, IsDir: e.Dir, Dropped: e.Dropped}
	switch e.Type {
	case wire.Dropped:
		return out, e.Dropped > 0 && e.Path == "" && e.From == "" && !e.Exchange
	case wire.Renamed:
		if !w.below(e.From) {
			return out, false
		}
	case wire.Created, wire.Modified, wire.Deleted, wire.Attributes:
		if e.From != "" || e.Exchange {
			return out, false
		}
	default:
		return out, false
	}
	if e.Dropped != 0 || !w.below(e.Path) {
		return out, false
	}
	at, from := wire.UnescapeName(e.Path), wire.UnescapeName(e.From)
	_, one := printable.Name(at)
	_, other := printable.Name(from)
	if out.Escaped = one || other; !out.Escaped {
		out.Path, out.From = at, from
		return out, true
	}
	out.Path, out.From = printable.Escape(at), printable.Escape(from)
	return out, true
}

// below reports whether a path from the agent is one below the directory.
func (w *Watch) below(p string) bool {
	dir := wire.EscapeName(w.dir)
	if dir != "/" {
		dir += "/"
	}
	return len(p) > len(dir) && p[:len(dir)] == dir && isBelow(p[len(dir):])
}

// Close ends the watch. Calling it twice is fine.
func (w *Watch) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	_ = w.s.Close() // twice fails, and means nothing
	return nil
}
