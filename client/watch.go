// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// WatchOptions configure a watch; the zero value watches as the sandbox's user, without
// subdirectories.
type WatchOptions struct {
	User      string
	Recursive bool
}

// Watch is an open watch on a directory. Only Close may be called concurrently.
type Watch struct {
	c      *Client
	ctx    context.Context
	cancel context.CancelFunc
	body   io.ReadCloser
	events *eventReader
	end    *v1.WatchEnd
	err    error
}

// Watch starts watching a directory of a sandbox; an empty path is the workspace. When it
// returns, the watch is in place: every later change is reported. It lasts until ctx ends or it
// is closed, and the sandbox is not idle until then.
func (c *Client) Watch(ctx context.Context, ref, path string, o WatchOptions) (*Watch, error) {
	q := make(url.Values)
	set(q, "path", path)
	set(q, "user", o.User)
	if o.Recursive {
		q.Set("recursive", "true")
	}
	w := &Watch{c: c}
	w.ctx, w.cancel = context.WithCancel(ctx)
	resp, err := c.do(w.ctx, request{
		method: "GET", path: of(ref, "/watch"), query: q,
		header: http.Header{"Accept": {"text/event-stream"}},
	})
	if err != nil {
		w.cancel()
		return nil, err
	}
	w.body, w.events = resp.Body, newEventReader(resp.Body)
	switch ev, err := w.read(); {
	case err != nil:
		_ = w.Close()
		return nil, err
	case ev.name != v1.WatchBegun:
		_ = w.Close()
		return nil, garbled(errors.New("a watch begins with " + ev.name))
	}
	return w, nil
}

// Next waits for the next event. It returns io.EOF when the watch ended by itself, see End. An
// event of type dropped means that events are missing: list the directory to know its state.
func (w *Watch) Next() (*v1.WatchEvent, error) {
	if w.end != nil {
		return nil, io.EOF
	}
	if w.err != nil {
		return nil, w.err
	}
	ev, err := w.read()
	if err != nil {
		w.err = err
		return nil, err
	}
	if ev.name == v1.WatchEnded {
		end := new(v1.WatchEnd)
		if err := json.Unmarshal(ev.data, end); err != nil {
			w.err = garbled(err)
			return nil, w.err
		}
		w.end = end
		return nil, io.EOF
	}
	out := new(v1.WatchEvent)
	if err := json.Unmarshal(ev.data, out); err != nil {
		w.err = garbled(err)
		return nil, w.err
	}
	return out, nil
}

// End returns why the watch ended; nil before Next returned io.EOF.
func (w *Watch) End() *v1.WatchEnd { return w.end }

// Close ends the watch, also while Next waits. Calling it twice is fine.
func (w *Watch) Close() error {
	w.cancel()
	return w.body.Close()
}

// read returns the next event; the server's error is an error.
func (w *Watch) read() (event, error) {
	ev, err := w.events.next()
	switch {
	case err != nil && w.ctx.Err() != nil:
		return ev, w.c.unanswered(w.ctx, err)
	case err != nil:
		return ev, fault.Wrap(fault.Unavailable, err, "the watch broke").
			WithRemedy("watch again, and list the directory: what changed meanwhile is not told")
	case ev.name == v1.StreamError:
		var p v1.Problem
		if err := json.Unmarshal(ev.data, &p); err != nil {
			return ev, garbled(err)
		}
		return ev, faultOf(&p, "")
	}
	return ev, nil
}
