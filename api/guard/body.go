// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"sandpit.dev/fault"
)

// body is a request's body with a bound on its stalls. It may be large and its client slow, so a
// bound on the whole would be wrong; but a client that sends next to nothing would hold a
// connection, and what its handler holds, for ever. Only the time in which the handler waits
// counts: a slow handler is not its client's fault.
type body struct {
	io.ReadCloser
	ctl      *http.ResponseController
	stall    time.Duration
	rate     int64
	patience time.Duration // for how long it is waited yet, at most stall
	ended    bool
}

func (b *body) Read(p []byte) (int, error) {
	b.more()
	began := time.Now()
	n, err := b.ReadCloser.Read(p)
	b.patience = min(b.stall, b.patience-time.Since(began)+time.Duration(n)*time.Second/time.Duration(b.rate))
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		// After a body's end the server goes on reading, to see whether the client
		// is still there, for as long as the answer takes.
		b.ended = true
		_ = b.ctl.SetReadDeadline(time.Time{}) // not every connection has one
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fault.Wrap(fault.Timeout, err, "the body came too slowly: in %v less than %d bytes a second", b.stall, b.rate).
			WithRemedy("send it again, over a connection that is faster")
	case errors.Is(err, io.ErrUnexpectedEOF):
		// Many readers take this one for the plain end of a short source; it must
		// not pass for that, or half a file would be kept as a whole one.
		err = fault.Wrap(fault.Malformed, err, "the body was cut off").WithRemedy("send it again")
	}
	return n, err
}

// more bounds the wait for the next bytes.
func (b *body) more() {
	_ = b.ctl.SetReadDeadline(time.Now().Add(b.patience)) // not every connection has one
}

// left bounds what the server itself does with a body that was not read to its end: it reads on
// before it answers. The next request has a deadline of its own.
func (b *body) left() {
	if b != nil && !b.ended {
		b.more()
	}
}

// broken reports whether a request's body will never end properly, so that its connection is
// unusable.
func broken(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF)
}
