// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// maxHeld bounds, in bytes, what was written and not yet read in one direction. It is what
// sockets hold on most hosts.
const maxHeld = 200 << 10

// duplex returns both ends of a connection within the process. Each direction holds some of what
// was written, as a socket's does and that of a [net.Pipe] does not: there a client that sends
// a file, and an agent that says that it does not want it, wait for each other. It has no
// descriptors, so that time may be a test's.
func duplex() (near, far net.Conn) {
	a, b := newDirection(), newDirection()
	return &end{in: a, out: b}, &end{in: b, out: a}
}

// end is one end of a connection.
type end struct{ in, out *direction }

func (e *end) Read(b []byte) (int, error)  { return e.in.read(b) }
func (e *end) Write(b []byte) (int, error) { return e.out.write(b) }

// Close lets the other end read what was written, and no more. Twice is fine.
func (e *end) Close() error {
	e.out.close(&e.out.ended, &e.out.writeBy)
	e.in.close(&e.in.left, &e.in.readBy)
	return nil
}

// gone reports whether the other end is closed, whatever is still to be read.
func (e *end) gone() bool {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	return e.in.ended
}

func (e *end) LocalAddr() net.Addr  { return pipeAddr{} }
func (e *end) RemoteAddr() net.Addr { return pipeAddr{} }

func (e *end) SetDeadline(t time.Time) error {
	_ = e.SetReadDeadline(t)
	return e.SetWriteDeadline(t)
}

func (e *end) SetReadDeadline(t time.Time) error {
	e.in.limit(&e.in.readBy, t)
	return nil
}

func (e *end) SetWriteDeadline(t time.Time) error {
	e.out.limit(&e.out.writeBy, t)
	return nil
}

// direction is what goes from one end to the other.
type direction struct {
	mu              sync.Mutex
	changed         *sync.Cond // anything below
	held            []byte
	ended, left     bool // closed by who writes, by who reads
	readBy, writeBy deadline
}

// deadline is when a call that waits gives up.
type deadline struct {
	at    time.Time // zero: never
	timer *time.Timer
}

func newDirection() *direction {
	d := &direction{}
	d.changed = sync.NewCond(&d.mu)
	return d
}

func (d *direction) read(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		switch {
		case d.left:
			return 0, broke("read", net.ErrClosed)
		case d.readBy.over():
			return 0, broke("read", os.ErrDeadlineExceeded)
		case len(d.held) > 0 || len(b) == 0:
			n := copy(b, d.held)
			if d.held = d.held[n:]; len(d.held) == 0 {
				d.held = nil
			}
			d.changed.Broadcast()
			return n, nil
		case d.ended:
			return 0, io.EOF
		}
		d.changed.Wait()
	}
}

func (d *direction) write(b []byte) (n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		switch {
		case d.ended:
			return n, broke("write", net.ErrClosed)
		case d.writeBy.over():
			return n, broke("write", os.ErrDeadlineExceeded)
		case d.left:
			return n, broke("write", syscall.EPIPE)
		case len(b) == 0:
			return n, nil
		case len(d.held) < maxHeld:
			m := min(len(b), maxHeld-len(d.held))
			d.held = append(d.held, b[:m]...)
			b, n = b[m:], n+m
			d.changed.Broadcast()
			continue
		}
		d.changed.Wait()
	}
}

// close sets which, of ended and left, and ends the waits of that end.
func (d *direction) close(which *bool, by *deadline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*which = true
	by.stop()
	if d.left {
		d.held = nil
	}
	d.changed.Broadcast()
}

// limit sets a deadline, of calls that wait now too.
func (d *direction) limit(by *deadline, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	by.stop()
	if by.at = at; !at.IsZero() {
		by.timer = time.AfterFunc(time.Until(at), func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.changed.Broadcast()
		})
	}
	d.changed.Broadcast()
}

func (l *deadline) over() bool { return !l.at.IsZero() && !time.Now().Before(l.at) }

func (l *deadline) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

// broke makes the error of a connection, as package net does.
func broke(op string, err error) error {
	return &net.OpError{Op: op, Net: pipeAddr{}.Network(), Err: err}
}
