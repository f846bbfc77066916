// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tproxy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/destination"
)

// backlog is how many connections wait in the kernel.
const backlog = 1024

// Take binds a socket of each kind to a port of all addresses, and has them take what comes there. It closes the files. It
// takes CAP_NET_BIND_SERVICE for a port below 1024, and no other right.
func Take(tcp, udp *os.File, port int) (_ *net.TCPListener, _ *net.UDPConn, err error) {
	defer func() { _, _ = tcp.Close(), udp.Close() }()
	err = control(tcp, func(fd int) error {
		if _, err := bind(fd, port, unix.SOCK_STREAM); err != nil {
			return err
		}
		return unix.Listen(fd, backlog)
	})
	if err != nil {
		return nil, nil, err
	}
	err = control(udp, func(fd int) error {
		family, err := bind(fd, port, unix.SOCK_DGRAM)
		if err != nil {
			return err
		}
		return destination.Receive(fd, family == unix.AF_INET6)
	})
	if err != nil {
		return nil, nil, err
	}
	l, err := net.FileListener(tcp)
	if err != nil {
		return nil, nil, err
	}
	p, err := net.FilePacketConn(udp)
	if err != nil {
		_ = l.Close()
		return nil, nil, err
	}
	tl, ok := l.(*net.TCPListener)
	u, also := p.(*net.UDPConn)
	if !ok || !also {
		_, _ = l.Close(), p.Close()
		return nil, nil, errors.New("the sockets are not of TCP and UDP")
	}
	return tl, u, nil
}

// bind binds a socket of a kind, and returns its family.
func bind(fd, port, kind int) (family int, err error) {
	is, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err == nil && is != kind {
		err = fmt.Errorf("a socket is of kind %d, not %d", is, kind)
	}
	if err == nil {
		family, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	}
	if err != nil {
		return 0, err
	}
	switch family {
	case unix.AF_INET:
		return family, unix.Bind(fd, &unix.SockaddrInet4{Port: port})
	case unix.AF_INET6:
		return family, unix.Bind(fd, &unix.SockaddrInet6{Port: port})
	}
	return 0, fmt.Errorf("a socket is of family %d", family)
}

func control(c syscall.Conn, f func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	outer := raw.Control(func(fd uintptr) { inner = f(int(fd)) })
	return errors.Join(inner, outer)
}
