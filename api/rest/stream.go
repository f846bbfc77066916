// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"strconv"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// streamExec runs a command and sends its output as it comes. A client that goes
// away, or stops reading, loses the stream and nothing else: the command goes on.
func (a *API) streamExec(ctx context.Context, c *idempotency.Call, ref string, r engine.ExecRequest, sp *httpapi.Spellings) error {
	return a.streamCommand(ctx, c, r, sp, func(_ *commandEvents, r engine.ExecRequest, sink func(sandbox.Frame) error) (any, error) {
		res, err := a.runExec(ctx, c, ref, r, sink)
		if err != nil {
			return nil, err
		}
		out := outcomeOf(&res)
		return &out, complete(c, &out, &out)
	})
}

// streamCommand streams what run writes, and at last its outcome.
func (a *API) streamCommand(ctx context.Context, c *idempotency.Call, r engine.ExecRequest, sp *httpapi.Spellings, run func(*commandEvents, engine.ExecRequest, func(sandbox.Frame) error) (any, error)) error {
	s, give := newCommandEvents(c)
	defer s.Close()
	over, hurry := context.WithCancel(ctx)
	defer hurry()
	r.Started = s.started
	if last := c.R.Header.Get("Last-Event-ID"); s.framed != nil && last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			return fault.InvalidField("Last-Event-ID", "%q is not a frame number", sandbox.Clip(last, 40))
		}
		r.After = n
		r.Resumed = func() { s.after = n }
	}
	if s.framed["output"] == "all" {
		r.Lossless = true
		r.Limited = func(d time.Duration) { // the command waits for the client no longer than that
			context.AfterFunc(over, s.Patient(d))
		}
	}
	out, err := run(s, r, give)
	hurry()
	if err != nil {
		return s.Fail(sp.Rename(httpapi.Cause(ctx, err)))
	}
	s.End()
	_ = s.Send(v1.StreamExit, 0, out) // what a client that went away does not take is left out
	return nil
}

// newCommandEvents returns the stream that the client asks for, and a function that writes a frame to it.
func newCommandEvents(c *idempotency.Call) (*commandEvents, func(sandbox.Frame) error) {
	if framed := httpapi.Accepted(c.R, v1.FramesType); framed != nil {
		s := &commandEvents{Events: c.Frames(v1.FramesType), framed: framed}
		return s, func(f sandbox.Frame) error { return s.SendBytes(byte(f.Stream), f.Seq, f.At, f.Data) }
	}
	s, exact := &commandEvents{Events: c.Events()}, httpapi.WantsExact(c.R)
	return s, func(f sandbox.Frame) error { return s.Send(streamName(f.Stream), f.Seq, shape.Output(f, exact)) }
}

// wantsStream reports whether the client of a command asks for its output as it comes.
func wantsStream(c *idempotency.Call) bool {
	return httpapi.WantsEvents(c.R) || httpapi.Accepted(c.R, v1.FramesType) != nil
}

// commandEvents are the events of a command.
type commandEvents struct {
	*httpapi.Events
	framed map[string]string // the parameters of the media type of frames; nil: it is another
	after  int64             // the frame behind which the output goes on
	// sandbox is what the first event says of where the command runs, if the client
	// cannot know. It is set before started is called.
	sandbox string
}

// started sends a command's id, by the first event and, where nothing was sent
// yet, by a header.
func (s *commandEvents) started(id string) {
	s.SetHeader(v1.ProcessHeader, id)
	_ = s.Send(v1.StreamStart, 0, v1.ExecStarted{ProcessID: id, SandboxID: s.sandbox, After: s.after}) // the next frame's sender will see it
}
