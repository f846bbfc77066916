// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"errors"
	"io/fs"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// listen makes the agent's socket. It is bound through the directory's
// descriptor, since a socket's path has at most 107 bytes.
func (i *Instance) listen() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fault.Wrap(fault.Exhausted, err, "the host has no socket left")
	}
	f := os.NewFile(uintptr(fd), "agent") // blocking here: we never accept, and the agent sets what it needs
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: i.d.socketPath(i.id)})
	if errors.Is(err, unix.EADDRINUSE) { // of a life that no server saw the end of
		if err = i.remove(socketFile); err == nil || errors.Is(err, fs.ErrNotExist) {
			err = unix.Bind(fd, &unix.SockaddrUnix{Name: i.d.socketPath(i.id)})
		}
	}
	if err == nil {
		err = unix.Listen(fd, 256)
	}
	if err != nil {
		_ = f.Close()
		return nil, fault.Wrap(fault.Internal, err, "the agent's socket of sandbox %s cannot be made", i.id)
	}
	return f, nil
}

func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Exhausted, err, "the host has no socket left")
	}
	a := os.NewFile(uintptr(p[0]), "boot")
	defer func() { _ = a.Close() }()
	conn, err := net.FileConn(a)
	if err != nil {
		_ = unix.Close(p[1])
		return nil, nil, fault.Wrap(fault.Internal, err, "the boot socket cannot be used")
	}
	return conn.(*net.UnixConn), os.NewFile(uintptr(p[1]), "boot"), nil
}
