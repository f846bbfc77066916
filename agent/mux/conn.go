// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mux

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// maxPiece is the most that a stream sends at once: what the others wait for.
const maxPiece = 32 << 10

// conn is one stream.
type conn struct {
	*yamux.Stream
	others *yielding
	moved  atomic.Int64 // bytes, both ways

	mu     sync.Mutex // orders readers
	ahead  []byte     // what Gone has read
	err    error      // that Gone has seen
	until  time.Time  // the deadline of reads, while Gone has another
	asking bool       // Gone does
}

// Read reads what the other end has sent.
func (c *conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	if n := copy(b, c.ahead); n > 0 {
		c.ahead = c.ahead[n:]
		c.mu.Unlock()
		return n, nil
	}
	if err := c.err; err != nil {
		c.mu.Unlock()
		return 0, err
	}
	c.mu.Unlock()
	n, err := c.Stream.Read(b)
	c.moves(n)
	return n, plainly("read", err)
}

// newConn returns a stream as a connection. It is in use from now on.
func newConn(st *yamux.Stream, others *yielding) *conn {
	others.use()
	return &conn{Stream: st, others: others}
}

// moves counts bytes that were received or sent, and reports whether the stream yields to others.
func (c *conn) moves(n int) (much bool) {
	if c.moved.Add(int64(n)) > muchMoved {
		return true
	}
	c.others.use()
	return false
}

// Write sends b.
func (c *conn) Write(b []byte) (int, error) {
	sent := 0
	for len(b) > 0 {
		piece := b[:min(len(b), maxPiece)]
		if c.moves(len(piece)) {
			c.others.wait()
		}
		n, err := c.Stream.Write(piece)
		sent += n
		if err != nil {
			return sent, plainly("write", err)
		}
		b = b[n:]
	}
	return sent, nil
}

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline ends reads that wait then.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until = t; c.asking {
		return nil
	}
	return c.Stream.SetReadDeadline(t)
}

// maxAhead bounds what Gone reads to see whether it is the last.
const maxAhead = 64 << 10

// Gone reports whether the other end has closed the stream, though what it sent is yet to be read. Nobody
// reads meanwhile.
func (c *conn) Gone() bool {
	c.mu.Lock()
	c.asking = true
	c.mu.Unlock()
	_ = c.Stream.SetReadDeadline(time.Unix(1, 0))
	var b [4 << 10]byte
	for c.err == nil && len(c.ahead) < maxAhead {
		n, err := c.Stream.Read(b[:])
		c.mu.Lock()
		c.ahead = append(c.ahead, b[:n]...)
		c.mu.Unlock()
		if errors.Is(err, yamux.ErrTimeout) {
			break
		}
		c.err = plainly("read", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = false
	_ = c.Stream.SetReadDeadline(c.until)
	return c.err != nil
}

var errStuck = errors.New("the stream that carries the connection has taken nothing for too long")

// plainly says in the words of package net what became of a stream.
func plainly(op string, err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return err
	case errors.Is(err, yamux.ErrTimeout):
		err = os.ErrDeadlineExceeded
	case errors.Is(err, yamux.ErrConnectionWriteTimeout):
		err = errStuck // no timeout: what was not taken in time is sent yet, and is not to be sent again
	case errors.Is(err, yamux.ErrStreamClosed):
		err = net.ErrClosed
	}
	return &net.OpError{Op: op, Net: "mux", Err: err}
}
