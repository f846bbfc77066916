// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"
)

// firstWait is how long an answer's beginning waits for an error that has an
// HTTP status of its own, before the stream is opened without any event.
const firstWait = 250 * time.Millisecond

// Events is a stream of server-sent events, or of frames. Its methods may be called concurrently.
type Events struct {
	c    *Call
	form form
	out  *StallWriter
	quit chan struct{}
	stop sync.Once
	wg   sync.WaitGroup

	mu    sync.Mutex
	late  *time.Timer // calls what Late was given; nil: nothing
	begun bool
	buf   []byte
	due   int // bytes that were sent and are not paid for
}

// Event is one event of a stream. Seq is its id; zero: ID is, if it is not empty. One without a Name is its id alone, of
// which no program is told.
type Event struct {
	Name string
	Seq  int64
	ID   string // of a stream of server-sent events; without line breaks
	Data any    // a json.RawMessage is sent as it is
}

// WantsEvents reports whether a client asks for a stream of events.
func WantsEvents(r *http.Request) bool { return Accepted(r, eventsType) != nil }

// Accepted returns the parameters of a media type that the client accepts, nil if it does not.
func Accepted(r *http.Request, media string) map[string]string {
	for part := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if m, params, err := mime.ParseMediaType(part); err == nil && m == media && params["q"] != "0" {
			return params
		}
	}
	return nil
}

// WantsExact reports whether a client of a stream asks for bytes in base64 alone where they are
// no plain text: by text/event-stream;data=exact. For reading they would come as text, too, three
// to six times as long.
func WantsExact(r *http.Request) bool { return Accepted(r, eventsType)["data"] == "exact" }

// Events returns the stream that the call is answered with. It is opened by the first event, or
// a moment later if none comes, and kept alive then. Close it.
func (c *Call) Events() *Events { return c.stream(serverSent{}) }

// Frames is Events with frames of a media type instead.
func (c *Call) Frames(media string) *Events { return c.stream(frames{media}) }

func (c *Call) stream(form form) *Events {
	s := &Events{c: c, form: form, out: c.StallWriter(), quit: make(chan struct{})}
	s.wg.Go(func() {
		wait := time.NewTimer(min(firstWait, c.Heartbeat()))
		defer wait.Stop()
		for {
			select {
			case <-s.quit:
				return
			case <-wait.C:
				wait.Reset(c.Heartbeat())
				s.mu.Lock()
				_ = s.writeLocked(s.form.alive()) // the next event's sender will see it
				s.mu.Unlock()
			}
		}
	})
	return s
}

// Late has late called once the client has taken nothing for as long as it may ([Call.Stall]). It keeps the connection for
// grace then, in which it can still be told why the stream ends. It is called before anything is sent.
func (s *Events) Late(grace time.Duration, late func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.grace = grace
	s.late = time.AfterFunc(time.Hour, late)
	s.late.Stop()
}

// piece is what a client takes something of in time where that is looked at.
const piece = 32 << 10

// take writes what the client is to take in time.
func (s *Events) take(b []byte) error {
	for s.late != nil && len(b) > piece {
		if err := s.takeAll(b[:piece]); err != nil {
			return err
		}
		b = b[piece:]
	}
	return s.takeAll(b)
}

func (s *Events) takeAll(b []byte) error {
	if s.late != nil {
		s.late.Reset(s.out.wait)
		defer s.late.Stop()
	}
	if _, err := s.out.Write(b); err != nil {
		return err
	}
	return s.out.Flush()
}

// End ends the wait for events, and reports whether anything was sent. Last events may follow.
func (s *Events) End() bool {
	s.stop.Do(func() { close(s.quit) })
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// Close ends the stream, and leaves the connection fit for the next request.
func (s *Events) Close() {
	s.End()
	s.out.Close()
}

// Fail ends the stream with an error as its last event. Where nothing was sent yet it returns
// the error, which is an HTTP answer like any other then.
func (s *Events) Fail(err error) error {
	if !s.End() {
		return err
	}
	name, data := s.c.handler.o.StreamError(s.c.R.Context(), err)
	_ = s.Send(name, 0, data) // the client may be the one who went away
	return nil
}

// SetHeader sets a header of the answer, where nothing was sent yet.
func (s *Events) SetHeader(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.c.W.Header().Set(name, value)
	}
}

// Send sends one event at once. Seq is its id; zero: it has none.
func (s *Events) Send(name string, seq int64, data any) error {
	return s.SendAll([]Event{{Name: name, Seq: seq, Data: data}})
}

// SendAll sends events together.
func (s *Events) SendAll(events []Event) error {
	return s.send(func(b []byte) (_ []byte, err error) {
		for _, e := range events {
			if b, err = s.form.event(b, e); err != nil {
				return nil, err
			}
		}
		return b, nil
	})
}

// payAt is after how many bytes a stream pays for them: its project takes all of its answers at
// one pace.
const payAt = 256 << 10

// send sends what form appends to a buffer.
func (s *Events) send(form func(b []byte) ([]byte, error)) error {
	s.mu.Lock()
	b, err := form(s.buf[:0])
	if err == nil && len(b) > 0 {
		s.buf, s.due = b, s.due+len(b)
		err = s.writeLocked(b)
	}
	due := s.due
	if due < payAt {
		due = 0
	}
	s.due -= due
	s.mu.Unlock()
	if err != nil || due == 0 {
		return err
	}
	return s.c.Room.Pace(s.c.R.Context(), int64(due))
}

func (s *Events) writeLocked(b []byte) error {
	if !s.begun {
		h := s.c.W.Header()
		h.Set("Content-Type", s.form.media())
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		s.c.W.WriteHeader(http.StatusOK)
		s.begun = true
	}
	return s.take(b)
}
