// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// Conn is one call. Its methods are for the one goroutine that serves it, but
// for reading, which Until may do beside it.
type Conn struct {
	net.Conn
	r *wire.Reader
}

// New returns the call that comes by nc.
func New(nc net.Conn) *Conn { return &Conn{Conn: nc, r: wire.NewReader(nc)} }

// Next reads a frame. Its bytes hold until the next call.
func (c *Conn) Next() (wire.Type, []byte, error) { return c.r.Next() }

// Request reads what a call begins with.
func (c *Conn) Request() (*wire.Request, error) {
	t, p, err := c.r.Next()
	if err != nil {
		return nil, asMalformed(err)
	}
	if t != wire.Hello {
		return nil, fault.New(fault.Malformed, "the connection does not begin with a hello")
	}
	v, err := wire.CheckHello(p)
	if err != nil {
		return nil, asMalformed(err)
	}
	if v != wire.Version {
		return nil, fault.New(fault.Unsupported, "the sandbox's agent speaks protocol version %d, not %d", wire.Version, v).
			WithRemedy("stop and start the sandbox, so that it gets the current agent")
	}
	for {
		t, p, err = c.r.Next()
		if err != nil {
			return nil, asMalformed(err)
		}
		if !t.Ignorable() {
			break
		}
	}
	if t != wire.Call {
		return nil, fault.New(fault.Unsupported, "a frame of type %d stands where a call was due", t)
	}
	req := new(wire.Request)
	if err := wire.Decode(p, req); err != nil {
		return nil, asMalformed(err)
	}
	return req, nil
}

// Data reads the next piece of an upload; nil at its end. The bytes hold until the next call.
func (c *Conn) Data() ([]byte, error) {
	for {
		t, p, err := c.r.Next()
		switch {
		case err != nil:
			return nil, asMalformed(err)
		case t == wire.End:
			return nil, nil
		case t == wire.Data && len(p) > 0:
			return p, nil
		case t == wire.Data || t.Ignorable():
		default:
			return nil, fault.New(fault.Malformed, "a frame of type %d stands where data was due", t)
		}
	}
}

// Upload returns a reader of an upload.
func (c *Conn) Upload() io.Reader { return &upload{c: c} }

type upload struct {
	c    *Conn
	rest []byte
	end  bool
}

func (u *upload) Read(p []byte) (int, error) {
	for len(u.rest) == 0 {
		if u.end {
			return 0, io.EOF
		}
		b, err := u.c.Data()
		if err != nil {
			return 0, err
		}
		u.rest, u.end = b, b == nil
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

// End reads the End that a held start waits for.
func (c *Conn) End() error {
	for {
		t, _, err := c.r.Next()
		switch {
		case err != nil:
			return asMalformed(err)
		case t == wire.End:
			return nil
		case !t.Ignorable():
			return fault.New(fault.Malformed, "a frame of type %d stands where the word to start was due", t)
		}
	}
}

// Send writes one frame.
func (c *Conn) Send(t wire.Type, v any) error {
	b, err := wire.AppendJSON(nil, t, v)
	if err != nil {
		return err
	}
	_, err = c.Write(b)
	return err
}

// Answer sends a Reply and an empty Done in one piece.
func (c *Conn) Answer(v any) error {
	b, err := wire.AppendJSON(nil, wire.Reply, v)
	if err != nil {
		return err
	}
	_, _ = c.Write(wire.Append(b, wire.Done, nil)) // a client that is gone needs no answer
	return nil
}

// Conclude sends the last frames of a log and the Done after them in one piece: who
// waits for the result is woken once.
func (c *Conn) Conclude(rest []byte, e wire.Ending) error {
	b, err := wire.AppendJSON(rest, wire.Done, e)
	if err != nil {
		return err
	}
	_, err = c.Write(b)
	return err
}

// Outcome answers a call that has nothing to tell.
func (c *Conn) Outcome(err error) error {
	if err != nil {
		return err
	}
	return c.Answer(struct{}{})
}

// Fail sends err as the last frame, as far as its words are for the caller.
func (c *Conn) Fail(err error) {
	if IsCut(err) {
		return
	}
	e := fault.As(err)
	msg := e.Message
	if e.Code == fault.Internal && e.Err != nil {
		msg = e.Error() // the server logs it; it decides what its callers see
	}
	_ = c.Send(wire.Failure, wire.Error{Code: string(e.Code), Message: message.Clip(msg, 4096), Remedy: e.Remedy, Fields: e.Fields, Disk: e.Disk, Version: e.Version})
}

// Until returns a context that ends when the client goes away. It reads the
// connection, so nothing else may. done waits for that reading to end.
func (c *Conn) Until(parent context.Context) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(parent)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, _, err := c.r.Next(); err != nil {
				cancel()
				return
			}
		}
	}()
	return ctx, func() {
		cancel()
		c.CloseRead()
		<-ended
	}
}

// CloseRead ends a Read that is blocked in another goroutine, and leaves the
// other direction as it is.
func (c *Conn) CloseRead() { _ = c.SetReadDeadline(longAgo) }

// Gone reports whether the client has closed its end, though what it sent is still to be
// read: one that gave up on an agent that was stopped was told that its call failed.
func (c *Conn) Gone() bool {
	if g, ok := c.Conn.(interface{ Gone() bool }); ok { // one that has no descriptor
		return g.Gone()
	}
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	_ = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		gone = err == nil && n > 0
	})
	return gone
}

var longAgo = time.Unix(1, 0)

// IsCut reports whether the connection failed, so that no answer can be sent.
func IsCut(err error) bool {
	if _, told := errors.AsType[*fault.Error](err); told {
		return false // whatever is in it
	}
	_, broke := errors.AsType[*net.OpError](err)
	return broke || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

func asMalformed(err error) error {
	if fe, ok := errors.AsType[*wire.FormatError](err); ok {
		return fault.New(fault.Malformed, "%s", fe.Error())
	}
	return err
}
