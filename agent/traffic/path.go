// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// path is a connection of datagrams: from an address of the world to a socket inside, and back.
type path struct {
	server *Server
	way    way // of what is written
	until  deadline
	come   chan []byte
	over   chan struct{}
	once   sync.Once
}

// maxWaiting is how many datagrams wait on one path to be read. More are lost.
const maxWaiting = 32

// Answering returns a connection whose datagrams come from the address from and go to the socket inside at to;
// what that sends there later goes to the connection, and no longer to Read.
func (t *Server) Answering(from, to netip.AddrPort) (net.Conn, error) {
	p := &path{server: t, way: way{from, to}, until: newDeadline(), come: make(chan []byte, maxWaiting), over: make(chan struct{})}
	back := way{to, from}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.s.over:
		return nil, net.ErrClosed
	default:
	}
	if t.paths[back] != nil {
		return nil, &net.OpError{Op: "listen", Net: "udp", Err: os.ErrExist}
	}
	t.paths[back] = p
	t.s.say(kindPath, 0, back.append(nil))
	return p, nil
}

func (p *path) Read(b []byte) (int, error) {
	if p.until.past() {
		return 0, &net.OpError{Op: "read", Net: "udp", Err: os.ErrDeadlineExceeded}
	}
	select {
	case d := <-p.come:
		return copy(b, d), nil
	case <-p.until.wait():
		return 0, &net.OpError{Op: "read", Net: "udp", Err: os.ErrDeadlineExceeded}
	case <-p.over:
	case <-p.server.s.over:
	}
	return 0, net.ErrClosed
}

// Write sends a datagram. One for which there is no room is lost, as datagrams are.
func (p *path) Write(b []byte) (int, error) {
	select {
	case <-p.over:
		return 0, net.ErrClosed
	case <-p.server.s.over:
		return 0, net.ErrClosed
	default:
	}
	if len(b) > maxDatagram {
		return 0, &net.OpError{Op: "write", Net: "udp", Err: syscall.EMSGSIZE}
	}
	p.server.s.datagram(p.way, 0, b, false)
	return len(b), nil
}

// Close ends it. Calling it twice is fine.
func (p *path) Close() error {
	p.once.Do(func() {
		close(p.over)
		back := way{p.way.to, p.way.from}
		p.server.mu.Lock()
		delete(p.server.paths, back)
		p.server.mu.Unlock()
		p.server.s.say(kindLeave, 0, back.append(nil))
	})
	return nil
}

func (p *path) LocalAddr() net.Addr  { return net.UDPAddrFromAddrPort(p.way.from) }
func (p *path) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(p.way.to) }

func (p *path) SetDeadline(t time.Time) error {
	p.until.set(t)
	return nil
}
func (p *path) SetReadDeadline(t time.Time) error { return p.SetDeadline(t) }

// SetWriteDeadline has no effect: writes do not block.
func (p *path) SetWriteDeadline(time.Time) error { return nil }
