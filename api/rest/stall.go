// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"io"
	"net/http"
	"time"
)

// steadyWriter is an answer of which some has to be taken in time. It may be
// large and its client slow, so that no bound on the whole would be right; but
// one that takes nothing at all would hold a sandbox in use for ever.
type steadyWriter struct {
	w     io.Writer
	ctl   *http.ResponseController
	wait  time.Duration
	until time.Time // when all of it has to be taken; zero: it may go on for ever
}

func (s *steadyWriter) Write(p []byte) (int, error) {
	end := time.Now().Add(s.wait)
	if !s.until.IsZero() && s.until.Before(end) {
		end = s.until
	}
	_ = s.ctl.SetWriteDeadline(end) // not every connection has one
	return s.w.Write(p)
}

// done leaves the connection fit for the next request.
func (s *steadyWriter) done() { _ = s.ctl.SetWriteDeadline(time.Time{}) }
