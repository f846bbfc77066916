// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package traffic

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/destination"
	"sandpit.dev/linux/tproxy"
)

const (
	maxKept = 32 // sockets that answers were sent from
	pairs   = 8  // of sockets that a step gives
)

// pair is a socket of each kind. Both are used once: what they had waiting is gone with them.
type pair struct{ tcp, udp *os.File }

// sockets are those that all traffic of a session comes to.
type sockets struct {
	listener *net.TCPListener
	udp      *net.UDPConn

	overflows uint32 // of udp, that read knows of

	mu   sync.Mutex
	over bool
	kept map[netip.AddrPort]int // descriptors of sockets that are bound to an address of the world
}

// open has a pair take traffic.
func (p pair) open() (*sockets, error) {
	l, u, err := tproxy.Take(p.tcp, p.udp, Port)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fault.Wrap(fault.Conflict, err, "a program in the sandbox has port %d, which the network needs", Port).
			WithRemedy("end that program, or start the sandbox again")
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the sandbox's agent cannot take its traffic (%s)", err)
	}
	return &sockets{listener: l, udp: u, kept: make(map[netip.AddrPort]int)}, nil
}

// close has connections be refused, and wakes who waits. Twice is fine.
func (s *sockets) close() {
	s.mu.Lock()
	s.over = true
	for from, fd := range s.kept {
		_ = unix.Close(fd)
		delete(s.kept, from)
	}
	s.mu.Unlock()
	_ = s.listener.Close()
	_ = s.udp.Close()
}

// read returns the next datagram with where it came from and was sent to, and how many were dropped since the last one.
func (s *sockets) read(b []byte) (n int, w way, lost uint32, err error) {
	var oob [destination.Room]byte
	n, o, _, from, err := s.udp.ReadMsgUDPAddrPort(b, oob[:])
	if err != nil {
		return 0, w, 0, err
	}
	to, overflows := destination.Of(oob[:o])
	if overflows != 0 { // it is told beside datagrams once there are some
		lost = overflows - s.overflows // a counter of the kernel, which goes round
		s.overflows = overflows
	}
	if !to.IsValid() {
		return 0, w, lost + 1, errors.New("a datagram does not say where it was sent")
	}
	return n, way{plain(from), plain(to)}, lost, nil
}

// answer sends a datagram. What cannot be sent is lost.
func (s *sockets) answer(b []byte, w way) {
	if w.from.Port() == Port {
		_, _, _ = s.udp.WriteMsgUDPAddrPort(b, destination.Source(w.from.Addr()), w.to)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	fd, ok := s.kept[w.from]
	if !ok {
		if len(s.kept) >= maxKept {
			for from, fd := range s.kept { // any
				_ = unix.Close(fd)
				delete(s.kept, from)
				break
			}
		}
		var err error
		if fd, err = boundTo(w.from); err != nil {
			return
		}
		s.kept[w.from] = fd
	}
	_ = unix.Sendto(fd, b, 0, sockaddr(w.to))
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// boundTo makes a socket whose datagrams come from an address of the world, which a route made local. It is not connected, so
// that none comes to it.
func boundTo(from netip.AddrPort) (int, error) {
	family := unix.AF_INET6
	if from.Addr().Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil && family == unix.AF_INET6 { // for the kernel a route does not make an address of IPv6 one of the host's
		err = unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_FREEBIND, 1)
	}
	if err == nil {
		err = unix.Bind(fd, sockaddr(from))
	}
	if err != nil {
		_ = unix.Close(fd)
		return 0, err
	}
	return fd, nil
}

// control calls f with the descriptor of a file or connection.
func control(c syscall.Conn, f func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	outer := raw.Control(func(fd uintptr) { inner = f(int(fd)) })
	return errors.Join(inner, outer)
}
