// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// dialPatience is how long a program may leave a connection in its queue.
const dialPatience = 5 * time.Second

// Dial connects the caller with a port inside, and carries bytes until
// both directions have ended or one of the two is gone.
func (s *Service) Dial(ctx context.Context, c *call.Conn, req *wire.Request) error {
	if req.Port < 1 || req.Port > wire.MaxPort {
		return fault.InvalidField("port", "%d is outside 1 to %d", req.Port, wire.MaxPort)
	}
	if s.dials.Add(1) > wire.MaxPortConns {
		s.dials.Add(-1)
		return fault.New(fault.Exhausted, "the sandbox has %d connections to its ports open, its bound", wire.MaxPortConns).
			WithRemedy("close some and try again")
	}
	defer s.dials.Add(-1)
	port, err := s.dialPort(ctx, c, req.Port)
	if err != nil {
		return err
	}
	defer port.Close()
	if err := c.Send(wire.Reply, struct{}{}); err != nil {
		return err
	}
	j := &junction{c: c, port: port, sent: make(chan bool, 1)}
	var in sync.WaitGroup
	in.Go(j.inward)
	defer in.Wait()
	defer c.CloseRead()
	return j.outward()
}

// dialPort connects to what listens on a port, on whichever of the sandbox's own
// addresses. It is net.ErrClosed when the caller has gone meanwhile.
func (s *Service) dialPort(ctx context.Context, c *call.Conn, port int) (*portConn, error) {
	tried := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	for _, addr := range tried {
		if p, err := connect(ctx, addr, port); err == nil {
			return p, nil
		} else if !refused(err) {
			return nil, dialFault(port, err)
		}
	}
	// It may listen on an address of its own: 127.0.0.2, or an interface's.
	done, err := s.look(ctx, c)
	if err != nil {
		return nil, err
	}
	others, err := listeners(streamTables(), port, tried)
	done()
	if err != nil {
		return nil, dialFault(port, err)
	}
	for _, addr := range others {
		if hungUp(c.Conn) {
			return nil, net.ErrClosed
		}
		if p, err := connect(ctx, addr, port); err == nil {
			return p, nil
		}
	}
	return nil, dialFault(port, unix.ECONNREFUSED)
}

// maxAddresses bounds the addresses of one port that are tried beside loopback's.
const maxAddresses = 8

// refused reports whether nothing listens at an address, or there is no such one.
func refused(err error) bool {
	for _, errno := range []unix.Errno{
		unix.ECONNREFUSED, unix.EADDRNOTAVAIL, unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EAFNOSUPPORT, unix.ECONNRESET,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func dialFault(port int, err error) error {
	switch {
	case refused(err):
		e := fault.New(fault.Unavailable, "nothing listens on port %d in the sandbox", port)
		e.Retry = time.Second
		return e.WithRemedy("start a server there, for example: python3 -m http.server %d", port)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, unix.ETIMEDOUT):
		return fault.New(fault.Timeout, "what listens on port %d accepted no connection within %v", port, dialPatience).
			WithRemedy("see whether the program there hangs")
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.EAGAIN):
		return fault.Wrap(fault.Exhausted, err, "the sandbox has no more open files or memory for a connection to port %d", port).
			WithRemedy("close some connections and try again")
	}
	return fault.Wrap(fault.Internal, err, "port %d cannot be reached: %s", port, message.Of(err))
}

// junction carries bytes between a call and a port.
type junction struct {
	c    *call.Conn
	port *portConn
	sent chan bool // once: the caller's direction has ended; true: well
}

// inward hands on what the caller sends. It ends with the caller's End, or with
// its connection, and then ends the port's.
func (j *junction) inward() {
	broken := false
	for {
		b, err := j.c.Data()
		switch {
		case err != nil:
			_ = j.port.Close()
			j.sent <- false
			return
		case b == nil:
			_ = j.port.closeWrite() // a program that is gone takes no end
			j.sent <- true
			j.drain()
			return
		case broken:
			continue // the program takes nothing more; what it had to say is still on its way
		}
		switch err := j.write(b); {
		case errors.Is(err, net.ErrClosed):
			_ = j.port.Close()
			j.sent <- false
			return
		case err != nil:
			broken = true
		}
	}
}

// lookAfter is how often a caller is looked after while the program takes nothing.
const lookAfter = 10 * time.Second

// write waits for the program to take b. It is net.ErrClosed when the caller has
// gone meanwhile, which no read of ours would notice.
func (j *junction) write(b []byte) error {
	for {
		if err := j.port.SetWriteDeadline(time.Now().Add(lookAfter)); err != nil {
			return err
		}
		n, err := j.port.Write(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if b = b[n:]; hungUp(j.c.Conn) {
			return net.ErrClosed
		}
	}
}

// hungUp reports whether the other end of a connection is closed, if that can be
// told without reading.
func hungUp(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	over := false
	err = raw.Control(func(fd uintptr) {
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		_, err := unix.Poll(polled, 0)
		over = err == nil && polled[0].Revents != 0
	})
	return over || err != nil
}

// drain waits for the caller to go away, so that the port's connection does not
// outlive it.
func (j *junction) drain() {
	for {
		if _, _, err := j.c.Next(); err != nil {
			_ = j.port.Close()
			return
		}
	}
}

// Buffers of a connection: most of those that are open say nothing most of the
// time, and the agent is small.
const (
	firstPiece = 2 << 10
	mostPiece  = 32 << 10
)

// outward hands on what the program sends, and then waits for the other
// direction.
func (j *junction) outward() error {
	buf := make([]byte, firstPiece)
	for {
		n, err := j.port.Read(buf[wire.HeaderLen:])
		if n > 0 {
			wire.PutHeader(buf, wire.Data, n)
			if _, err := j.c.Write(buf[:wire.HeaderLen+n]); err != nil {
				return err
			}
			if n == len(buf)-wire.HeaderLen && len(buf) < mostPiece {
				buf = make([]byte, 4*len(buf))
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			buf = nil
			if _, err := j.c.Write(wire.Append(nil, wire.End, nil)); err != nil {
				return err
			}
			if !<-j.sent {
				return net.ErrClosed // there is nobody to tell
			}
			return j.c.Send(wire.Done, struct{}{})
		case err != nil:
			return fault.Wrap(fault.Unavailable, err, "the program in the sandbox broke the connection off")
		}
	}
}
