// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"strconv"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// Process is a process of a sandbox. It does not depend on its caller or on the server, and can
// be found again by its id. Its methods are safe for concurrent use.
type Process struct {
	c   *Client
	ref string
	id  string
}

// StartProcess starts a process and does not wait for it.
func (c *Client) StartProcess(ctx context.Context, ref string, r v1.StartProcess) (*Process, error) {
	var out v1.Process
	if _, err := c.begin(ctx, request{method: "POST", path: of(ref, "/processes"), body: r}, &out); err != nil {
		return nil, err
	}
	return c.OpenProcess(ref, out.ProcessID), nil
}

// ByName returns what stands for a process's id, as in OpenProcess: its name, which is that of the
// process that runs, or else of the one that had it last.
func ByName(name string) string { return "name:" + name }

// ByNumber is as ByName, for the number of a process inside the sandbox, while it runs.
func ByNumber(pid int) string { return "pid:" + strconv.Itoa(pid) }

// OpenProcess returns a process that was started before. It makes no request, so the process may
// not exist. A Process that is named by ByName means at each call the one that has the name then.
func (c *Client) OpenProcess(ref, processID string) *Process {
	return &Process{c: c, ref: ref, id: processID}
}

// ID is the process's id.
func (p *Process) ID() string { return p.id }

func (p *Process) path(rest string) string { return of(p.ref, "/processes/"+seg(p.id)+rest) }

// Get returns the record of the process.
func (p *Process) Get(ctx context.Context) (*v1.Process, error) { return p.c.Process(ctx, p.ref, p.id) }

// waitEach is how long one request waits: less than proxies wait for an answer.
const waitEach = 50 * time.Second

// Wait waits until the process has ended. It continues over a restart of the server, for which it
// waits at most Patience.
func (p *Process) Wait(ctx context.Context) (*v1.Process, error) {
	r := p.c.retry()
	for {
		out := new(v1.Process)
		q := url.Values{"timeout": {strconv.FormatFloat(waitEach.Seconds(), 'f', -1, 64)}}
		_, err := p.c.call(ctx, request{method: "GET", path: p.path("/wait"), query: q}, out)
		switch {
		case err == nil && out.Status != "running":
			return out, nil
		case err == nil:
			r.worked()
		default:
			if err := r.again(ctx, err); err != nil {
				return nil, err
			}
		}
	}
}

// Signal sends a signal by name ("SIGINT") or number to the process; with tree, also to every
// process that it started. One that has ended is fault.State.
func (p *Process) Signal(ctx context.Context, signal string, tree bool) error {
	_, err := p.c.call(ctx, request{method: "POST", path: p.path("/signal"), body: v1.SignalProcess{Signal: signal, Tree: &tree}}, nil)
	return err
}

// Kill ends the process and every process that it started. Killing one that has ended is not an
// error.
func (p *Process) Kill(ctx context.Context) error { return p.c.Kill(ctx, p.ref, p.id) }

// Resize sets the size of the process's terminal, each from 1 to 1000.
func (p *Process) Resize(ctx context.Context, cols, rows int) error {
	_, err := p.c.call(ctx, request{method: "POST", path: p.path("/resize"), body: v1.ResizeProcess{Cols: cols, Rows: rows}}, nil)
	return err
}

// maxInput is what one request may carry.
const maxInput = 1 << 20

// Write writes to a streamed standard input or a terminal, and blocks while the program does not
// read. If the answer is lost it is unknown how much was taken: see Stdin.
func (p *Process) Write(ctx context.Context, data []byte) (int, error) {
	n := 0
	for n < len(data) {
		part := data[n:min(n+maxInput, len(data))]
		taken, err := p.write(ctx, part, -1, false)
		n += taken.BytesTaken
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// CloseStdin ends a streamed standard input.
func (p *Process) CloseStdin(ctx context.Context) error {
	_, err := p.write(ctx, nil, -1, true)
	return err
}

func (p *Process) write(ctx context.Context, data []byte, offset int64, end bool) (v1.ProcessInput, error) {
	q := make(url.Values)
	if offset >= 0 {
		q.Set("offset", strconv.FormatInt(offset, 10))
	}
	if end {
		q.Set("close", "true")
	}
	var out v1.ProcessInput
	_, err := p.c.call(ctx, request{
		method: "POST", path: p.path("/stdin"), query: q, raw: bytes.NewReader(data), size: int64(len(data)),
	}, &out)
	if err == nil && (out.BytesTaken < 0 || out.BytesTaken > len(data)) {
		return v1.ProcessInput{}, garbled(fmt.Errorf("%d bytes were taken of %d", out.BytesTaken, len(data)))
	}
	return out, err
}

// Stdin is the standard input of a process of which this is the only writer. Each byte is taken
// once, even if connections break and servers restart.
type Stdin struct {
	p     *Process
	ctx   context.Context
	at    int64 // in the whole input; below zero: not known yet
	ended bool  // its end was sent
}

// Stdin returns the input of a process. Bytes are lost if others write to it at the same time:
// for that there is Write. ctx bounds everything that is done with it. It is not safe for
// concurrent use.
func (p *Process) Stdin(ctx context.Context) *Stdin { return &Stdin{p: p, ctx: ctx, at: -1} }

// Write writes all of data, and blocks while the program does not read.
func (s *Stdin) Write(data []byte) (int, error) {
	n := 0
	for n < len(data) {
		taken, err := s.put(data[n:min(n+maxInput, len(data))], false)
		n += taken
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Close ends the input. Calling it twice is fine.
func (s *Stdin) Close() error {
	if s.ended {
		return nil // to say it again would be refused where the process is over by now
	}
	_, err := s.put(nil, true)
	s.ended = err == nil
	return err
}

func (s *Stdin) put(data []byte, end bool) (int, error) {
	r := s.p.c.retry()
	for {
		if s.at < 0 { // what others have written before
			out, err := s.p.write(s.ctx, nil, -1, false)
			if err == nil {
				s.at = out.TotalBytes
				continue
			}
			if err := r.again(s.ctx, err); err != nil {
				return 0, err
			}
			continue
		}
		out, err := s.p.write(s.ctx, data, s.at, end)
		if err == nil {
			s.at += int64(out.BytesTaken)
			return out.BytesTaken, nil
		}
		if err := r.again(s.ctx, err); err != nil {
			return 0, err
		}
	}
}

// Patience is how long a call that follows, waits for or writes to a process, or a request that
// makes or begins something and whose connection broke, retries while the server does not answer.
// A server that this client has never reached is tried once.
const Patience = time.Minute

// Bounds of the pause between two tries: a server that comes back is found within
// the longer one.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 200 * time.Millisecond
)

// retry decides whether a call is made again.
type retry struct {
	c        *Client
	patience time.Duration
	since    time.Time // of the first failure in a row; zero: none
	pause    time.Duration
}

func (c *Client) retry() retry { return retry{c: c, patience: Patience} }

func (r *retry) worked() { r.since, r.pause = time.Time{}, 0 }

// again waits for the next try. It returns err if trying again makes no sense.
func (r *retry) again(ctx context.Context, err error) error {
	switch fault.Of(err) {
	case fault.Unavailable, fault.Timeout:
	default:
		return err
	}
	if ctx.Err() != nil {
		return err
	}
	switch {
	case r.since.IsZero() && unreachable(err) && !r.c.reached.Load():
		return err
	case r.since.IsZero():
		r.since, r.pause = time.Now(), firstPause
	case time.Since(r.since) > r.patience:
		return err
	default:
		r.c.tellWaiting(err, r.since.Add(r.patience))
	}
	t := time.NewTimer(r.pause)
	defer t.Stop()
	r.pause = min(2*r.pause, lastPause)
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return err
	}
}

// ProcessQuery selects processes of a sandbox. The zero value selects all.
type ProcessQuery struct {
	Running bool              // only those that have not ended
	Newest  bool              // first; else the oldest
	Name    string            // only those that have, or had, this name
	Labels  map[string]string // only those with all of these
}

// ListProcesses returns a sandbox's processes. The sequence ends after an error.
func (c *Client) ListProcesses(ctx context.Context, ref string, q ProcessQuery) iter.Seq2[*v1.Process, error] {
	v := url.Values{"limit": {"1000"}}
	if q.Running {
		v.Set("status", "running")
	}
	if q.Newest {
		v.Set("sort_order", "desc")
	}
	if q.Name != "" {
		v.Set("name", q.Name)
	}
	for name, value := range q.Labels {
		v.Set("label."+name, value)
	}
	return c.processPages(ctx, of(ref, "/processes"), v)
}

// processPages returns what a list of processes holds, page by page.
func (c *Client) processPages(ctx context.Context, path string, v url.Values) iter.Seq2[*v1.Process, error] {
	return func(yield func(*v1.Process, error) bool) {
		v := maps.Clone(v) // it may be called again
		for {
			var page v1.ProcessList
			if _, err := c.call(ctx, request{method: "GET", path: path, query: v}, &page); err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
			if page.NextCursor == nil {
				return
			}
			v.Set("cursor", *page.NextCursor)
		}
	}
}
