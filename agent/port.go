// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of ports.
const (
	MaxPorts     = wire.MaxPorts     // in one listing
	MaxPortConns = wire.MaxPortConns // connections to ports of one sandbox at a time
)

// Ports lists the listening sockets by port. truncated reports that there are more than
// [MaxPorts], or too many open files to find the owner of each.
func (c *Client) Ports(ctx context.Context) (ports []sandbox.Port, truncated bool, err error) {
	var w wire.Ports
	s, err := c.call(ctx, &wire.Request{Op: wire.OpPorts}, &w)
	if err != nil {
		return nil, false, err
	}
	defer s.close()
	if len(w.Ports) > MaxPorts {
		return nil, false, s.broken("the list of ports is too long")
	}
	for _, p := range w.Ports {
		addr, err := netip.ParseAddr(p.Address)
		if err != nil || addr.Zone() != "" || p.Port < 1 || p.Port > sandbox.MaxPort || p.PID < 0 || p.Protocol != "tcp" && p.Protocol != "udp" {
			return nil, false, s.broken("a port in the list is none")
		}
		ports = append(ports, sandbox.Port{
			Port: p.Port, Protocol: p.Protocol, Address: addr, PID: p.PID,
			Command: clean(p.Command, wire.MaxPortText), User: clean(p.User, wire.MaxPortText),
		})
	}
	return ports, w.Truncated, s.finish(nil)
}

// DialPort connects to a program that listens on a TCP port inside, on any of the sandbox's own
// addresses. Without one it is fault.Unavailable. ctx bounds the dialling only. The connection is
// a *PortConn.
func (c *Client) DialPort(ctx context.Context, port int) (*PortConn, error) {
	if port < 1 || port > sandbox.MaxPort {
		return nil, fault.InvalidField("port", "%d is outside 1 to %d", port, sandbox.MaxPort)
	}
	s, err := c.call(ctx, &wire.Request{Op: wire.OpDial, Port: port}, nil)
	if err != nil {
		return nil, err
	}
	if !s.detach() {
		defer s.close()
		return nil, s.ctx.Err()
	}
	return &PortConn{s: s, port: port}, nil
}

// PortConn is a connection to a port inside: a net.Conn whose write half can be closed by itself.
// Its deadlines are those of the connection to the agent; after a write that a deadline cut off
// the connection is unusable.
type PortConn struct {
	s    *stream
	port int

	readMu sync.Mutex
	rest   []byte // read and not yet given; holds until the next frame is read
	err    error  // of reading, for ever

	writeMu sync.Mutex
	buf     []byte // a frame
	ended   bool   // End was sent
	broken  error  // of writing, for ever
}

// mostPiece is the largest piece that is sent at once.
const mostPiece = 32 << 10

// Read reads what the program sends. io.EOF: it sends nothing more.
func (p *PortConn) Read(b []byte) (int, error) {
	p.readMu.Lock()
	defer p.readMu.Unlock()
	for len(p.rest) == 0 && len(b) > 0 {
		if p.err != nil {
			return 0, p.err
		}
		if err := p.moreLocked(); err != nil {
			if !isTimeout(err) {
				p.err = err
			}
			return 0, err
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *PortConn) moreLocked() error {
	t, b, err := p.s.r.Next()
	switch {
	case isTimeout(err): // as it is: the caller set the deadline
		return err
	case errors.Is(err, net.ErrClosed):
		return net.ErrClosed
	case err != nil:
		return p.s.failed(err)
	case t == wire.Data:
		p.rest = b
		return nil
	case t == wire.End, t == wire.Done:
		return io.EOF
	case t == wire.Failure:
		return p.s.asFault(b)
	case t.Ignorable():
		return nil
	}
	return p.s.broken("a frame stands among a port's bytes that is none of them")
}

// Write sends to the program. It blocks while the program reads nothing.
func (p *PortConn) Write(b []byte) (int, error) {
	p.writeMu.Lock()
	defer p.writeMu.Unlock()
	if p.ended {
		return 0, net.ErrClosed
	}
	for sent := 0; ; {
		if p.broken != nil {
			return sent, p.broken
		}
		if sent == len(b) {
			return sent, nil
		}
		n := min(len(b)-sent, mostPiece)
		p.buf = wire.Append(p.buf[:0], wire.Data, b[sent:sent+n])
		if _, err := p.s.Write(p.buf); err != nil {
			p.broken = err // half a frame may be sent
			continue
		}
		sent += n
	}
}

// CloseWrite signals the program the end of its input; what it sends can still be read. Calling
// it twice is fine.
func (p *PortConn) CloseWrite() error {
	p.writeMu.Lock()
	defer p.writeMu.Unlock()
	if p.ended || p.broken != nil {
		return p.broken
	}
	p.ended = true
	_, p.broken = p.s.Write(wire.Append(nil, wire.End, nil))
	return p.broken
}

// Close ends the connection in both directions. Calling it twice is fine.
func (p *PortConn) Close() error {
	_ = p.s.Close() // twice fails, and means nothing
	return nil
}

// LocalAddr has no meaning here; the interface requires it.
func (p *PortConn) LocalAddr() net.Addr { return portAddr(0) }

// RemoteAddr is the port.
func (p *PortConn) RemoteAddr() net.Addr { return portAddr(p.port) }

// SetDeadline, SetReadDeadline and SetWriteDeadline are as in net.Conn.
func (p *PortConn) SetDeadline(t time.Time) error      { return p.s.SetDeadline(t) }
func (p *PortConn) SetReadDeadline(t time.Time) error  { return p.s.SetReadDeadline(t) }
func (p *PortConn) SetWriteDeadline(t time.Time) error { return p.s.SetWriteDeadline(t) }

// portAddr is a port inside.
type portAddr int

func (portAddr) Network() string { return "tcp" }
func (a portAddr) String() string {
	return netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(a)).String()
}
