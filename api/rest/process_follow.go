// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

type followProcess struct {
	byProcess
	Cursor *int64 `query:"cursor" doc:"the number of the last frame that you have seen; the default is 0: all. The header Last-Event-ID says the same"`
	Follow *bool  `query:"follow" doc:"false: only what there is by now; the default is true"`
	Recent *int64 `query:"recent" doc:"without a cursor: of what there is already, about the last so many bytes, 1 to 67108864; of a terminal, from where its screen makes sense"`
}

// followProcess sends a process's output from any frame on: as events, or over
// a WebSocket where the request asks for one.
func (a *API) followProcess(ctx context.Context, c *idempotency.Call, in *followProcess) (err error) {
	r := engine.FollowRequest{Once: in.Follow != nil && !*in.Follow}
	if in.Cursor != nil {
		r.Cursor = *in.Cursor
	} else if last := c.R.Header.Get("Last-Event-ID"); last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			return fault.InvalidField("Last-Event-ID", "%q is not a frame number", sandbox.Clip(last, 40))
		}
		r.Cursor = n
	}
	if r.Recent, err = recentBytes(in.Recent); err != nil {
		return err
	}
	g, err := a.Processes.Follow(ctx, c.Caller, in.Ref, in.ID, r)
	if err != nil {
		return err
	}
	defer g.Close()
	in.ID = g.Record().ID // of what was named by another word: its name may be another's in a moment
	c.W.Header().Set(v1.ProcessHeader, in.ID)
	if strings.EqualFold(c.R.Header.Get("Upgrade"), "websocket") {
		return a.serveSocket(ctx, c, &in.byProcess, g, false)
	}
	if c.R.Method == http.MethodHead {
		c.W.Header().Set("Content-Type", "text/event-stream")
		c.W.WriteHeader(http.StatusOK)
		return nil
	}
	ctx, done := c.Bound(ctx)
	defer done()
	s := c.Events()
	defer s.Close()
	exact := httpapi.WantsExact(c.R)
	end, err := g.Run(ctx, engine.FollowSink{
		Frame: func(f sandbox.Frame) error { return s.Send(streamName(f.Stream), f.Seq, shape.Output(f, exact)) },
		Gap:   func(gap engine.Gap) error { return s.Send(v1.StreamGap, 0, gapOf(gap)) },
	})
	if err != nil {
		return s.Fail(httpapi.Cause(ctx, err))
	}
	s.End()
	// What a client that went away does not take is left out.
	if end.Ended {
		_ = s.Send(v1.StreamExit, 0, endedProcess(g.Record(), end))
	} else {
		_ = s.Send(v1.StreamEnd, 0, v1.OutputEnd{Cursor: end.LastSeq})
	}
	return nil
}

// recentBytes reads how much of a process's past is wanted; zero: all.
func recentBytes(n *int64) (int64, error) {
	switch {
	case n == nil:
		return 0, nil
	case *n < 1 || *n > engine.MaxStreamed:
		return 0, fault.InvalidField("recent", "%d is outside 1 to %d", *n, int64(engine.MaxStreamed))
	}
	return *n, nil
}

func streamName(s sandbox.Stream) string {
	if s == sandbox.Stderr {
		return v1.StreamStderr
	}
	return v1.StreamStdout
}

func gapOf(g engine.Gap) v1.OutputGap {
	out := v1.OutputGap{Bytes: g.Bytes, Frames: g.Frames, Why: g.Why}
	if g.Stream != 0 {
		out.Stream = streamName(g.Stream)
	}
	return out
}

// endedProcess is a record with the end that a following came to.
func endedProcess(rec sandbox.Process, end engine.FollowEnd) v1.Process {
	rec.State, rec.Result, rec.LastSeq = sandbox.ProcessExited, &end.Result, end.LastSeq
	return processOf(rec)
}

type processLogs struct {
	byProcess
	Stream *string `query:"stream" doc:"stdout or stderr; the default is both, in the order in which they were read"`
	Follow *bool   `query:"follow" doc:"true: go on until the process ends"`
	Cursor *int64  `query:"cursor" doc:"only what comes after this frame"`
}

// processLogs sends the bytes of a process's output and nothing else.
func (a *API) processLogs(ctx context.Context, c *idempotency.Call, in *processLogs) error {
	live := in.Follow != nil && *in.Follow
	r := engine.FollowRequest{Once: !live}
	if in.Cursor != nil {
		r.Cursor = *in.Cursor
	}
	only := httpapi.Given(in.Stream)
	switch only {
	case "", v1.StreamStdout, v1.StreamStderr:
	default:
		return fault.InvalidField("stream", "%q is neither stdout nor stderr", sandbox.Clip(only, 40))
	}
	g, err := a.Processes.Follow(ctx, c.Caller, in.Ref, in.ID, r)
	if err != nil {
		return err
	}
	defer g.Close()
	h := c.W.Header()
	h.Set(v1.ProcessHeader, g.Record().ID)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff") // what a sandbox wrote is not for browsers to guess at
	h.Set("Cache-Control", "no-store")
	c.W.WriteHeader(http.StatusOK)
	if c.R.Method == http.MethodHead {
		return nil
	}
	ctx, done := c.Bound(ctx)
	defer done()
	w := c.StallWriter()
	defer w.Close()
	if live {
		_ = w.Flush() // that there is a process is told before it says anything
	}
	_, err = g.Run(ctx, engine.FollowSink{Frame: func(f sandbox.Frame) error {
		if only != "" && streamName(f.Stream) != only {
			return nil
		}
		if _, err := w.Write(f.Data); err != nil || !live {
			return err
		}
		return w.Flush()
	}})
	if err != nil {
		panic(http.ErrAbortHandler) // half of a log must not look like a whole one
	}
	return nil
}
