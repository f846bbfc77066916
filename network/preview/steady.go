// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"sandpit.dev/fault"
)

// idleConn is a connection that is over when nothing has moved on it for a while.
type idleConn struct {
	net.Conn
	idle time.Duration
}

func (c *idleConn) Read(b []byte) (int, error) {
	c.more()
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.more()
	}
	return n, err
}

func (c *idleConn) Write(b []byte) (int, error) {
	c.more()
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.more()
	}
	return n, err
}

// more puts the end off for both directions: one that only sends is not idle.
func (c *idleConn) more() { _ = c.SetDeadline(time.Now().Add(c.idle)) } // a connection that is closed has none

// CloseWrite ends one direction, where the connection can.
func (c *idleConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// steady is an answer and a request's body of which some has to move in time,
// however long they are.
type steady struct {
	http.ResponseWriter
	ctl   *http.ResponseController
	p     *Proxy
	taken bool // by Hijack

	mu   sync.Mutex
	over bool // the request is; the connection may be at the next
}

func newSteady(w http.ResponseWriter, r *http.Request, p *Proxy) *steady {
	s := &steady{ResponseWriter: w, ctl: http.NewResponseController(w), p: p}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &body{ReadCloser: r.Body, s: s}
	}
	return s
}

// Unwrap lets flushes and deadlines through.
func (s *steady) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *steady) Write(b []byte) (int, error) {
	_ = s.ctl.SetWriteDeadline(time.Now().Add(s.p.stall)) // not every connection has one
	return s.ResponseWriter.Write(b)
}

// Hijack takes over the connection, for an upgrade.
func (s *steady) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := s.ctl.Hijack()
	if err != nil {
		return nil, nil, err
	}
	s.taken = true
	return &idleConn{Conn: nc, idle: s.p.idle}, rw, nil
}

// done leaves the connection fit for the next request.
func (s *steady) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if !s.taken {
		_ = s.ctl.SetWriteDeadline(time.Time{})
	}
}

// read bounds the wait for more of the body; zero: no bound.
func (s *steady) read(wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	var at time.Time
	if wait > 0 {
		at = time.Now().Add(wait)
	}
	_ = s.ctl.SetReadDeadline(at) // not every connection has one
}

// body is a request's.
type body struct {
	io.ReadCloser
	s *steady
}

// bodyError is an error of reading the client's body, which is the client's and
// not the program's.
type bodyError struct{ error }

func (e *bodyError) Unwrap() error { return e.error }

func (b *body) Read(p []byte) (int, error) {
	b.s.read(b.s.p.stall)
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		// The server goes on reading, to see whether the client is still there.
		b.s.read(0)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = &bodyError{fault.Wrap(fault.Timeout, err, "nothing of the body came for %v", b.s.p.stall).WithRemedy("send it again")}
	default:
		err = &bodyError{fault.Wrap(fault.Malformed, err, "the body was cut off").WithRemedy("send it again")}
	}
	return n, err
}

// buffers are reused between answers.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10

func newBuffers() *buffers {
	return &buffers{sync.Pool{New: func() any { return new([bufferSize]byte) }}}
}

func (b *buffers) Get() []byte  { return b.pool.Get().(*[bufferSize]byte)[:] }
func (b *buffers) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }
