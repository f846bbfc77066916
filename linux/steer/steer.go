// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package steer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/cleanup"
	"sandpit.dev/linux/destination"
	"sandpit.dev/linux/route"
)

// port is where both sockets are bound, see the package comment.
const port = 53

// Steering is a network namespace whose traffic comes to two sockets.
type Steering struct {
	netns *os.File
	tcp   *net.TCPListener
	udp   *net.UDPConn
	link  io.Closer

	overflows uint32 // of udp, that Read knows of
	lost      int64  // of those, that Lost was not told of

	once sync.Once
	err  error
}

// Open steers the traffic of a network namespace, in which loopback is up. The
// descriptor stays the caller's. The codes are Unsupported where the kernel has no
// such programs, Conflict where something in the namespace serves on port 53 already.
func Open(netns *os.File) (_ *Steering, err error) {
	var fd int
	err = held(netns, func(ns int) error {
		fd, err = unix.FcntlInt(uintptr(ns), unix.F_DUPFD_CLOEXEC, 3)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("keep the network namespace: %w", err)
	}
	s := &Steering{netns: os.NewFile(uintptr(fd), "netns")}
	var undo cleanup.Stack
	defer undo.Run()
	undo.Add(func() { _ = s.netns.Close() })
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if err = within(s.netns, s.begin); !errors.Is(err, unix.EADDRINUSE) || time.Since(began) > patience {
			break
		}
	}
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fault.Wrap(fault.Conflict, err, "a program in the sandbox has port %d, which the network needs", port).
			WithRemedy("end that program, or start the sandbox again")
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the sandbox's network cannot be made (%s)", err)
	}
	undo.Add(func() { _ = s.tcp.Close() })
	undo.Add(func() { _ = s.udp.Close() })
	err = descriptors(s.tcp, s.udp, func(tcp, udp int) error {
		return held(s.netns, func(ns int) error {
			s.link, err = attach(ns, tcp, udp)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	undo.Release()
	return s, nil
}

// patience is how long port 53 may be in use before a program has it. What the server
// starts has copies of its descriptors for a moment, the last steering's sockets among them.
const patience = 100 * time.Millisecond

// begin opens the sockets and makes all addresses local, all or nothing, on a thread that
// is in the namespace.
func (s *Steering) begin() (err error) {
	var undo cleanup.Stack
	defer undo.Run()
	if s.tcp, err = listen(); err != nil {
		return err
	}
	undo.Add(func() { _ = s.tcp.Close() })
	if s.udp, err = datagrams(port); err != nil {
		return err
	}
	undo.Add(func() { _ = s.udp.Close() })
	if err := route.EverythingOfBoth(); err != nil {
		return err
	}
	undo.Release()
	return nil
}

// Accept returns the next connection to another address than the loopback's, or to
// port 53 of that. Its LocalAddr is where it was meant to go.
func (s *Steering) Accept() (*net.TCPConn, error) { return s.tcp.AcceptTCP() }

// Wait waits until there is a datagram, without room for it.
func (s *Steering) Wait() error {
	c, err := s.udp.SyscallConn()
	if err != nil {
		return err
	}
	return c.Read(func(fd uintptr) bool {
		var none [1]byte
		_, _, err := unix.Recvfrom(int(fd), none[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return !errors.Is(err, unix.EAGAIN)
	})
}

// Read reads a datagram: who sent it, and where it was meant to go. What is longer than
// b is cut, and a datagram whose goal is not told is dropped.
func (s *Steering) Read(b []byte) (n int, from, to netip.AddrPort, err error) {
	for {
		var oob [128]byte
		n, o, _, from, err := s.udp.ReadMsgUDPAddrPort(b, oob[:])
		if err != nil {
			return 0, from, to, err
		}
		to, overflows := destination.Of(oob[:o])
		if overflows != 0 { // it is told beside datagrams once there are some
			s.lost += int64(overflows - s.overflows) // a counter of the kernel, which goes round
			s.overflows = overflows
		}
		if to.IsValid() {
			return n, netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), to, nil
		}
	}
}

// Lost counts the datagrams for which there was no room since it was last asked, as far as
// the last Read knows.
func (s *Steering) Lost() int64 {
	n := s.lost
	s.lost = 0
	return n
}

// Answer sends a datagram from port 53 of an address that the sandbox sent one to.
func (s *Steering) Answer(b []byte, from netip.Addr, to netip.AddrPort) error {
	_, _, err := s.udp.WriteMsgUDPAddrPort(b, destination.Source(from), to)
	return err
}

// Answering returns a socket of the namespace whose datagrams come from the address
// from and go to the sandbox's socket at to, and which gets what that sends on. After
// Close it is an error.
func (s *Steering) Answering(from, to netip.AddrPort) (conn *net.UDPConn, err error) {
	err = within(s.netns, func() error {
		d := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(from), Control: anyAddress}
		c, err := d.DialContext(context.Background(), "udp", to.String())
		if err == nil {
			conn = c.(*net.UDPConn)
		}
		return err
	})
	return conn, err
}

// Close ends the steering: no address but the loopback's can be reached any
// more, by connections that were accepted neither. A second Close does nothing.
func (s *Steering) Close() error {
	s.once.Do(func() {
		s.err = errors.Join(s.link.Close(), s.tcp.Close(), s.udp.Close(), within(s.netns, func() error {
			_ = route.Everything(unix.AF_INET6, false)
			return route.Everything(unix.AF_INET, false)
		}), s.netns.Close())
	})
	return s.err
}

// within calls f on a thread that is in the namespace. A thread that cannot come back
// ends with its goroutine.
func within(netns *os.File, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			runtime.UnlockOSThread()
			done <- err
			return
		}
		defer home.Close()
		err = held(netns, func(ns int) error { return unix.Setns(ns, unix.CLONE_NEWNET) })
		if err != nil {
			runtime.UnlockOSThread()
			done <- fmt.Errorf("enter the network namespace: %w", err)
			return
		}
		err = f()
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// held calls f with a file's descriptor, which is not closed meanwhile: its number could
// be another file's by then, and that another sandbox's namespace.
func held(file *os.File, f func(fd int) error) error {
	c, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	outer := c.Control(func(fd uintptr) { inner = f(int(fd)) })
	return cmp.Or(inner, outer)
}

// anyAddress lets a socket have an address that others have too, or, of IPv6, one
// that no interface has: for the kernel a route does not make it local there.
func anyAddress(network, _ string, c syscall.RawConn) error {
	var err error
	outer := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		if err == nil && !strings.HasSuffix(network, "4") {
			err = unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_FREEBIND, 1)
		}
	})
	return cmp.Or(err, outer)
}

func listen() (*net.TCPListener, error) {
	c := net.ListenConfig{}
	c.SetMultipathTCP(false) // the map of sockets takes none
	l, err := c.Listen(context.Background(), "tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// datagrams makes the UDP socket, with the address that a datagram was for told
// beside it.
func datagrams(port int) (*net.UDPConn, error) {
	c := net.ListenConfig{Control: func(network, address string, c syscall.RawConn) error {
		err := anyAddress(network, address, c)
		if err != nil {
			return err
		}
		outer := c.Control(func(fd uintptr) {
			err = destination.Receive(int(fd), !strings.HasSuffix(network, "4"))
		})
		return cmp.Or(err, outer)
	}}
	p, err := c.ListenPacket(context.Background(), "udp", fmt.Sprintf(":%d", port))
	if err != nil {
		return nil, err
	}
	return p.(*net.UDPConn), nil
}

func descriptors(tcp *net.TCPListener, udp *net.UDPConn, f func(tcp, udp int) error) error {
	t, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	u, err := udp.SyscallConn()
	if err != nil {
		return err
	}
	var inner, failed error
	outer := t.Control(func(tcp uintptr) {
		inner = u.Control(func(udp uintptr) { failed = f(int(tcp), int(udp)) })
	})
	return cmp.Or(failed, inner, outer)
}
