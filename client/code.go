// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// RunCode runs one cell of code and returns its result when it has ended. Code that fails is not
// an error. The code keeps running when ctx ends, unless the request says otherwise.
func (c *Client) RunCode(ctx context.Context, ref string, r v1.RunCode) (*v1.CodeResult, error) {
	out := new(v1.CodeResult)
	if _, err := c.begin(ctx, request{method: "POST", path: of(ref, "/code"), body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// CodeSink receives the output of code while it runs, in order. Each function may be nil. An
// error ends the stream and is returned.
type CodeSink struct {
	Started func(v1.CodeStarted) error
	Output  func(data []byte, stderr bool) error // exactly as it was written
	Result  func(v1.CodeValue) error
}

// StreamCode runs one cell of code and passes its output to sink as it comes.
func (c *Client) StreamCode(ctx context.Context, ref string, r v1.RunCode, sink CodeSink) (*v1.CodeOutcome, error) {
	resp, err := c.do(ctx, request{
		method: "POST", path: of(ref, "/code"), body: r,
		header: http.Header{"Accept": {"text/event-stream"}},
	})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	const goesOn = "what became of the code is in the sandbox's activity"
	events := newEventReader(resp.Body)
	for {
		ev, err := events.next()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, c.unanswered(ctx, err)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fault.New(fault.Unavailable, "the stream broke before the code's end").WithRemedy(goesOn)
		case err != nil:
			return nil, fault.Wrap(fault.Unavailable, err, "the stream of what the code gives cannot be read").WithRemedy(goesOn)
		}
		out, err := sink.event(ev)
		if out != nil || err != nil {
			return out, err
		}
	}
}

// event passes an event on. The outcome is not nil after the last.
func (s *CodeSink) event(ev event) (*v1.CodeOutcome, error) {
	switch ev.name {
	case v1.StreamStart:
		return nil, handOn(ev, s.Started)
	case v1.StreamStdout, v1.StreamStderr:
		if s.Output == nil {
			return nil, nil
		}
		return nil, handOn(ev, func(out v1.Output) error {
			data, err := exact(out.Data, out.DataBase64)
			if err != nil {
				return garbled(err)
			}
			return s.Output(data, ev.name == v1.StreamStderr)
		})
	case v1.StreamResult:
		return nil, handOn(ev, s.Result)
	case v1.StreamEnd:
		out := new(v1.CodeOutcome)
		return out, handOn(ev, func(o v1.CodeOutcome) error { *out = o; return nil })
	case v1.StreamError:
		return nil, handOn(ev, func(p v1.Problem) error { return faultOf(&p, "") })
	}
	return nil, nil
}

// handOn decodes an event's data and calls fn, which may be nil.
func handOn[T any](ev event, fn func(T) error) error {
	if fn == nil {
		return nil
	}
	var v T
	if err := json.Unmarshal(ev.data, &v); err != nil {
		return garbled(err)
	}
	return fn(v)
}

// CreateContext makes a context of code.
func (c *Client) CreateContext(ctx context.Context, ref string, r v1.CreateContext) (*v1.Context, error) {
	out := new(v1.Context)
	if _, err := c.begin(ctx, request{method: "POST", path: of(ref, "/code/contexts"), body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Contexts returns a sandbox's contexts, oldest first.
func (c *Client) Contexts(ctx context.Context, ref string) ([]v1.Context, error) {
	var out v1.ContextList
	_, err := c.call(ctx, request{method: "GET", path: of(ref, "/code/contexts")}, &out)
	return out.Items, err
}

// Context returns one context.
func (c *Client) Context(ctx context.Context, ref, id string) (*v1.Context, error) {
	out := new(v1.Context)
	if _, err := c.call(ctx, request{method: "GET", path: of(ref, "/code/contexts/"+seg(id))}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// RestartContext ends the kernel of a context, with its variables and all that it started, and
// starts a new one.
func (c *Client) RestartContext(ctx context.Context, ref, id string) (*v1.Context, error) {
	out := new(v1.Context)
	if _, err := c.call(ctx, request{method: "POST", path: of(ref, "/code/contexts/"+seg(id)+"/restart")}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// InterruptContext interrupts the code that runs in a context; without any it is fault.State.
func (c *Client) InterruptContext(ctx context.Context, ref, id string) error {
	_, err := c.call(ctx, request{method: "POST", path: of(ref, "/code/contexts/"+seg(id)+"/interrupt")}, nil)
	return err
}

// DeleteContext deletes a context, and ends all that it started.
func (c *Client) DeleteContext(ctx context.Context, ref, id string) error {
	_, err := c.call(ctx, request{method: "DELETE", path: of(ref, "/code/contexts/"+seg(id))}, nil)
	return err
}
