// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerd

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// Listen listens at an address of the Engine's own network: what is served there
// the Engine reaches, as a registry of its host's.
func (e *Engine) Listen(address string) (net.Listener, error) {
	var l net.Listener
	err := e.inNetwork(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	return l, err
}

// DialTCP connects to an address of the Engine's own network.
func (e *Engine) DialTCP(address string) (net.Conn, error) {
	var c net.Conn
	err := e.inNetwork(func() (err error) {
		c, err = net.Dial("tcp", address)
		return err
	})
	return c, err
}

// inNetwork runs fn in the Engine's network, with the loopback up.
func (e *Engine) inNetwork(fn func() error) error {
	var fds []int // of this process's network, and of the Engine's; the Engine's mounts do not show them
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	for _, path := range []string{"/proc/thread-self/ns/net", fmt.Sprintf("/proc/%d/ns/net", e.PID)} {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("the network %s: %w", path, err)
		}
		fds = append(fds, fd)
	}
	return e.Do(func() (err error) {
		if err := unix.Setns(fds[1], unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter the network of process %d: %w", e.PID, err)
		}
		defer func() { err = errors.Join(err, unix.Setns(fds[0], unix.CLONE_NEWNET)) }()
		if err := loopbackUp(); err != nil {
			return err
		}
		return fn()
	})
}

// loopbackUp brings the loopback of the thread's network up.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
		return fmt.Errorf("the loopback: %w", err)
	}
	req.SetUint16(req.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("bring the loopback up: %w", err)
	}
	return nil
}
