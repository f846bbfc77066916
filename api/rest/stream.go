// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/api/guard"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
)

// firstWait is how long an answer's beginning waits for an error that has an
// HTTP status of its own, before the stream is opened without any event.
const firstWait = 250 * time.Millisecond

// streamExec runs a command and sends its output as it comes. A client that goes
// away, or stops reading, loses the stream and nothing else: the command goes on.
func (a *API) streamExec(ctx context.Context, c *call, ref string, r engine.ExecRequest, sp *spellings) error {
	return a.streamCommand(ctx, c, r, sp, func(_ *events, r engine.ExecRequest, sink func(agent.Frame) error) (any, error) {
		res, err := a.runExec(ctx, c, ref, r, sink)
		if err != nil {
			return nil, err
		}
		out := outcomeOf(&res)
		return &out, c.complete(&out, &out)
	})
}

// streamCommand streams what run gives out, and at last its outcome.
func (a *API) streamCommand(ctx context.Context, c *call, r engine.ExecRequest, sp *spellings, run func(*events, engine.ExecRequest, func(agent.Frame) error) (any, error)) error {
	s := openEvents(c, a.heartbeat, a.stall)
	defer s.steady.done()
	r.Started = s.started
	out, err := run(s, r, func(f agent.Frame) error {
		name := v1.StreamStdout
		if f.Stream == agent.Stderr {
			name = v1.StreamStderr
		}
		out := v1.Output{At: f.At.UTC()}
		out.Data, out.DataBase64 = output(f.Data, false)
		return s.send(name, f.Seq, &out)
	})
	if err != nil {
		return s.fail(c, sp.rename(why(ctx, err)))
	}
	s.end()
	_ = s.send(v1.StreamExit, 0, out) // the client went away: nothing to tell
	return nil
}

// started tells a command's id, by the first event and, where nothing was sent
// yet, by a header.
func (s *events) started(id string) {
	s.mu.Lock()
	if !s.begun {
		s.w.Header().Set(processHeader, id)
	}
	s.mu.Unlock()
	_ = s.send(v1.StreamStart, 0, v1.ExecStarted{ProcessID: id, SandboxID: s.sandbox}) // the next frame's sender will see it
}

// processHeader names the process that an answer is about.
const processHeader = "Sandpit-Process-Id"

// sandboxHeader names the sandbox of a command that asked for one and has begun, whatever
// becomes of the answer.
const sandboxHeader = "Sandpit-Sandbox-Id"

// events writes server-sent events. Its methods may be called concurrently.
type events struct {
	w      http.ResponseWriter
	ctl    *http.ResponseController
	steady *steadyWriter
	quit   chan struct{}
	wg     sync.WaitGroup

	// sandbox is what the first event says of where the command runs, if the client
	// cannot know. It is set before started is called.
	sandbox string

	mu    sync.Mutex
	begun bool
	buf   []byte
}

// openEvents starts the goroutine that opens the stream if nothing else does,
// and keeps it alive; end ends it.
func openEvents(c *call, heartbeat, stall time.Duration) *events {
	ctl := http.NewResponseController(c.w)
	s := &events{w: c.w, ctl: ctl, steady: &steadyWriter{w: c.w, ctl: ctl, wait: stall}, quit: make(chan struct{})}
	s.wg.Go(func() {
		wait := time.NewTimer(min(firstWait, heartbeat))
		defer wait.Stop()
		for {
			select {
			case <-s.quit:
				return
			case <-wait.C:
				wait.Reset(heartbeat)
				s.mu.Lock()
				_ = s.writeLocked([]byte(": alive\n\n")) // the next frame's sender will see it
				s.mu.Unlock()
			}
		}
	})
	return s
}

// end stops the goroutine, and tells whether anything was sent.
func (s *events) end() bool {
	close(s.quit)
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// fail ends the stream with an error as its last event. Where nothing was sent yet it gives
// the error back, which is an HTTP answer like any other then.
func (s *events) fail(c *call, err error) error {
	if !s.end() {
		return err
	}
	p, _ := guard.Problem(err, guard.RequestID(c.r.Context()))
	_ = s.send(v1.StreamError, 0, &p) // the client may be the one who went away
	return nil
}

// item is one event. Seq is its id; zero: none.
type item struct {
	name string
	seq  int64
	data any
}

// send writes one event and flushes it. Seq is its id; zero: none.
func (s *events) send(name string, seq int64, data any) error {
	return s.sendAll([]item{{name, seq, data}})
}

// sendAll writes events and flushes them together.
func (s *events) sendAll(items []item) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buf[:0]
	for _, it := range items {
		payload, err := json.Marshal(it.data)
		if err != nil {
			return err
		}
		b = append(b, "event: "...)
		b = append(b, it.name...)
		if it.seq > 0 {
			b = append(b, "\nid: "...)
			b = strconv.AppendInt(b, it.seq, 10)
		}
		b = append(b, "\ndata: "...)
		b = append(b, payload...) // JSON has no line breaks of its own
		b = append(b, "\n\n"...)
	}
	if s.buf = b; len(b) == 0 {
		return nil
	}
	return s.writeLocked(b)
}

func (s *events) writeLocked(b []byte) error {
	if !s.begun {
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		s.w.WriteHeader(http.StatusOK)
		s.begun = true
	}
	if _, err := s.steady.Write(b); err != nil {
		return err
	}
	return s.ctl.Flush()
}
