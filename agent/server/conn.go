// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// conn is one call. Its methods are for the one goroutine that serves it, but
// for reading, which watch may do beside it.
type conn struct {
	net.Conn
	r *wire.Reader
}

// request reads what a call begins with.
func (c *conn) request() (*wire.Request, error) {
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

// data reads the next piece of an upload; nil at its end. The bytes hold until the next call.
func (c *conn) data() ([]byte, error) {
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

// end reads the End that a held start waits for.
func (c *conn) end() error {
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

// send writes one frame.
func (c *conn) send(t wire.Type, v any) error {
	b, err := wire.AppendJSON(nil, t, v)
	if err != nil {
		return err
	}
	_, err = c.Write(b)
	return err
}

// answer sends a Reply and an empty Done in one piece.
func (c *conn) answer(v any) error {
	b, err := wire.AppendJSON(nil, wire.Reply, v)
	if err != nil {
		return err
	}
	_, _ = c.Write(wire.Append(b, wire.Done, nil)) // a client that is gone needs no answer
	return nil
}

// conclude sends the last frames of a log and the Done after them in one piece: who
// waits for the result is woken once.
func (c *conn) conclude(rest []byte, e wire.Ending) error {
	b, err := wire.AppendJSON(rest, wire.Done, e)
	if err != nil {
		return err
	}
	_, err = c.Write(b)
	return err
}

// outcome answers a call that has nothing to tell.
func (c *conn) outcome(err error) error {
	if err != nil {
		return err
	}
	return c.answer(struct{}{})
}

// fail sends err as the last frame, as far as its words are for the caller.
func (c *conn) fail(err error) {
	if isCut(err) {
		return
	}
	e := fault.As(err)
	msg := e.Message
	if e.Code == fault.Internal && e.Err != nil {
		msg = e.Error() // the server logs it; it decides what its callers see
	}
	_ = c.send(wire.Failure, wire.Error{Code: string(e.Code), Message: clip(msg, 4096), Remedy: e.Remedy, Fields: e.Fields, Disk: e.Disk})
}

// until returns a context that ends when the client goes away. It reads the
// connection, so nothing else may. done waits for that reading to end.
func (c *conn) until(parent context.Context) (ctx context.Context, done func()) {
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
		closeRead(c.Conn)
		<-ended
	}
}

// closeRead ends a Read that is blocked in another goroutine, and leaves the
// other direction as it is.
func closeRead(nc net.Conn) { _ = nc.SetReadDeadline(longAgo) }

// gone reports whether the client has closed its end, though what it sent is still to be
// read: one that gave up on an agent that was stopped was told that its call failed.
func (c *conn) gone() bool {
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

// isCut reports whether the connection failed, so that no answer can be sent.
func isCut(err error) bool {
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

// clip shortens s for a message, on a character's border.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
