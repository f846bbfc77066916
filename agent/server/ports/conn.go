// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"context"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// portConn is a connection to a program inside. It is made with the kernel's
// calls: package net's way to dial would make the agent a tenth larger.
type portConn struct{ *os.File }

// connect makes one. The socket is bound to the loopback interface, by which the
// kernel reaches all of its own addresses, and no other host: nothing leaves
// the network namespace, whatever the address is.
func connect(ctx context.Context, addr netip.Addr, port int) (*portConn, error) {
	family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: port, Addr: addr.As16()})
	if addr.Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: addr.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	// A segment waits for no other: what is sent is whole messages of others.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if err := unix.BindToDevice(fd, "lo"); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	err = unix.Connect(fd, to)
	p := &portConn{os.NewFile(uintptr(fd), "port")}
	if err == unix.EINPROGRESS {
		err = p.await(ctx)
	}
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	return p, nil
}

// await waits for the connection to be made.
func (p *portConn) await(ctx context.Context) error {
	raw, err := p.SyscallConn()
	if err != nil {
		return err
	}
	if err := p.SetWriteDeadline(time.Now().Add(dialPatience)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Close() })
	defer stop()
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		errno, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		switch {
		case err != nil:
			failed = err
		case errno != 0:
			failed = unix.Errno(errno)
		default: // no error: it is made, or on its way
			_, err := unix.Getpeername(int(fd))
			return err == nil
		}
		return true
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	return p.SetWriteDeadline(time.Time{})
}

// closeWrite tells the program that nothing more comes.
func (p *portConn) closeWrite() error {
	raw, err := p.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
}
