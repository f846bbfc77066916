// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Events is what gives a run's events; *runs.Runner is one.
type Events interface {
	Events(ctx context.Context, c access.Caller, id string, after int64, wait time.Duration) (*sandbox.Run, []*sandbox.RunEvent, error)
}

// Timing of a stream; zero fields take the value named behind them.
type Timing struct {
	Heartbeat time.Duration // 15 s: a comment, where nothing else comes
	Stall     time.Duration // 30 s: a client that takes nothing for so long is gone
}

// Stream answers a request with the events of a run, from the one on that the request
// has seen last (Last-Event-ID, or after in the query), and ends after the run's last.
// They are read from the records, so that a reader may be as slow as it likes. Whoever
// has seen the last gets 204, which tells a browser not to come again. An error was not
// answered: it is an HTTP answer like any other.
func Stream(w http.ResponseWriter, r *http.Request, e Events, c access.Caller, id string, t Timing) error {
	if t.Heartbeat <= 0 {
		t.Heartbeat = 15 * time.Second
	}
	if t.Stall <= 0 {
		t.Stall = 30 * time.Second
	}
	after, err := seen(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	run, events, err := e.Events(ctx, c, id, after, 0)
	if err != nil {
		return err
	}
	if after > 0 && len(events) == 0 && run.State.Ended() {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	s := &stream{w: w, ctl: http.NewResponseController(w), stall: t.Stall}
	s.send([]byte("retry: 1000\n\n"))
	for s.err == nil {
		var out []byte
		for _, ev := range events {
			after = ev.Seq
			text, err := json.Marshal(data(run, ev))
			if err != nil {
				return nil // cannot be: all of it is text and numbers
			}
			out = fmt.Appendf(out, "id: %d\nevent: %s\ndata: %s\n\n", ev.Seq, ev.Type, text)
		}
		if len(events) == 0 {
			if run.State.Ended() {
				return nil
			}
			out = []byte(": heartbeat\n\n")
		}
		s.send(out)
		if s.err != nil {
			return nil // the client went away; it may come again
		}
		if run, events, err = e.Events(ctx, c, id, after, t.Heartbeat); err != nil {
			if ctx.Err() == nil {
				text, _ := json.Marshal(v1.RunStreamError{Error: fault.As(err).Message}) // text marshals
				s.send(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", v1.RunEventError, text))
			}
			return nil
		}
	}
	return nil
}

// seen is the number of the last event that a client has had.
func seen(r *http.Request) (int64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fault.InvalidField("Last-Event-ID", "%q is not a valid id of a run event", sandbox.Clip(text, 40)).
			WithRemedy("pass the id of the last event that you have seen, or none for all of them")
	}
	return n, nil
}

// stream writes until the client takes no more.
type stream struct {
	w     http.ResponseWriter
	ctl   *http.ResponseController
	stall time.Duration
	err   error
}

func (s *stream) send(b []byte) {
	if s.err != nil {
		return
	}
	// Not every transport has deadlines; then the connection's own end is the bound.
	_ = s.ctl.SetWriteDeadline(time.Now().Add(s.stall))
	if _, s.err = s.w.Write(b); s.err == nil {
		s.err = s.ctl.Flush()
	}
}
