// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// StallWriter writes an answer of which the client has to take some in time. The answer may be
// large and its client slow, so that no bound on the whole would be right; but a client that
// takes nothing at all would hold a sandbox in use for ever.
type StallWriter struct {
	w     io.Writer
	ctl   *http.ResponseController
	wait  time.Duration
	grace time.Duration // for which the client may go on to take nothing, see [Events.Late]
	until time.Time     // when all of it has to be taken; zero: it may go on for ever

	mu    sync.Mutex // orders the setting of deadlines
	spare time.Time  // until then the client may take nothing; zero: no longer than wait
}

// StallWriter returns a writer of the call's answer. Close it.
func (c *Call) StallWriter() *StallWriter {
	return &StallWriter{w: c.W, ctl: http.NewResponseController(c.W), wait: c.Stall()}
}

// paced returns a writer of an answer that is held in memory meanwhile: a client has to take
// it at a least rate.
func (c *Call) paced(size int64) *StallWriter {
	w := c.StallWriter()
	w.until = time.Now().Add(w.wait + time.Duration(size)*time.Second/leastRate)
	return w
}

func (s *StallWriter) Write(p []byte) (int, error) {
	s.limit()
	return s.w.Write(p)
}

// limit sets the deadline of a write that begins, or goes on.
func (s *StallWriter) limit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := time.Now().Add(s.wait + s.grace)
	if s.spare.After(end) {
		end = s.spare
	}
	if !s.until.IsZero() && s.until.Before(end) {
		end = s.until
	}
	_ = s.ctl.SetWriteDeadline(end) // not every connection has one
}

// patient lets the client take nothing for d. hurry ends that.
func (s *StallWriter) patient(d time.Duration) (hurry func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = time.Now().Add(d)
	return func() {
		s.mu.Lock()
		s.spare = time.Time{}
		s.mu.Unlock()
		s.limit()
	}
}

// Flush sends what was written so far.
func (s *StallWriter) Flush() error { return s.ctl.Flush() }

// Close leaves the connection fit for the next request.
func (s *StallWriter) Close() { _ = s.ctl.SetWriteDeadline(time.Time{}) }
