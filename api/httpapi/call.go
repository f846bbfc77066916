// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
)

// Call is one request on its way through an operation. It belongs to the request's goroutine.
type Call struct {
	W      http.ResponseWriter
	R      *http.Request
	Caller access.Caller // zero if the operation is open
	Status int           // that the answer will have; an operation may set another
	// Room is the memory that the answer, and a large body, hold. It is closed behind the
	// answer.
	Room *budget.Room
	// Answered is called with an answer in JSON, or with nil where there is none but its status, before it is sent; nil: nothing is. The bytes
	// are its own until it returns.
	Answered func(status int, body []byte)
	Value    any // the coat's own

	handler *Handler
	op      *Operation // nil: the request is for none
}

// Heartbeat returns how often a quiet stream says that it is alive.
func (c *Call) Heartbeat() time.Duration { return c.handler.o.Heartbeat }

// Stall returns how long a client may take nothing of an answer.
func (c *Call) Stall() time.Duration { return c.handler.o.Stall }

// Route returns the path of the request below its base.
func (c *Call) Route() string {
	path := c.R.URL.EscapedPath()
	for _, base := range c.handler.o.Bases {
		if rest, ok := strings.CutPrefix(path, base); ok {
			return rest
		}
	}
	return path
}

// Closed returns the reason that the handler was closed for, or nil.
func (c *Call) Closed() error { return context.Cause(c.handler.life) }

// Bound returns a context for work that may take long: it ends with ctx, and when the handler is
// closed. [Cause] says for which reason.
func (c *Call) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	life := c.handler.life
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// Cause returns the reason that ctx ended for, where err only says that it did.
func Cause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && (fault.Is(err, fault.Canceled) || fault.Is(err, fault.Timeout)) {
		return cause
	}
	return err
}

// lenient reports whether what an operation does not have is ignored.
func (c *Call) lenient() bool { return c.handler.o.Lenient }

// maxBody returns the most bytes of the call's body in JSON.
func (c *Call) maxBody() int64 {
	if c.op != nil && c.op.in.maxBody > 0 {
		return c.op.in.maxBody
	}
	return c.handler.o.MaxBody
}

// Body returns the body of an operation that reads JSON, which the operation can read again.
func (c *Call) Body() ([]byte, error) {
	limit := c.maxBody()
	if c.R.ContentLength > limit {
		return nil, guard.TooLarge(limit)
	}
	if err := c.reserveBody(limit); err != nil {
		return nil, err
	}
	var body bytes.Buffer
	if err := readBody(c.R, &body, limit); err != nil {
		return nil, err
	}
	c.R.Body = io.NopCloser(bytes.NewReader(body.Bytes()))
	return body.Bytes(), nil
}

// readBody reads the whole body of a request, of at most limit bytes.
func readBody(r *http.Request, to *bytes.Buffer, limit int64) error {
	n, err := to.ReadFrom(io.LimitReader(r.Body, limit+1))
	switch {
	case n > limit:
		return guard.TooLarge(limit)
	case err == nil:
		return nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	return fault.Wrap(fault.Malformed, err, "the body ended after %d bytes, before its end", n)
}

// bodyCost is what a byte of a body costs: as it came, in a buffer that grew to hold it, and
// as the text of a field.
const bodyCost = 4

// reserveBody takes room for a body that is read whole, of at most limit bytes.
func (c *Call) reserveBody(limit int64) error {
	size := c.R.ContentLength
	if size < 0 {
		size = limit
	}
	if size <= FreeAnswer || c.Room.Held() > 0 { // or it was read before, for its hash
		return nil
	}
	return c.Reserve(c.R.Context(), bodyCost*size)
}

// Reserve takes room for n bytes of the answer, or returns an error if there is not enough.
func (c *Call) Reserve(ctx context.Context, n int64) error {
	_, err := c.Room.Take(ctx, n)
	return err
}
