// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tproxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/route"
)

// Steer brings all that this process's network namespace sends to transparent sockets at a port. The namespace has no
// other interface that is up than its loopback: else the code is Conflict. It is Unsupported where the kernel lacks the
// means, or the process the right. Calling it again is fine.
func Steer(port uint16) error {
	if err := Confined(); err != nil {
		return err
	}
	return steerAll(port, netip.AddrPort{})
}

// SteerBeside is Steer where the namespace has other interfaces, too. Over these nothing is sent but what answers connections that
// came to own, an address of IPv4 which is the namespace's, with a port of TCP. What is sent to that address comes back in.
func SteerBeside(port uint16, own netip.AddrPort) error {
	if !own.Addr().Is4() || own.Port() == 0 {
		return fault.New(fault.Unsupported, "the sandbox is reached at %s, which is no address of IPv4 with a port", own)
	}
	return steerAll(port, own)
}

func steerAll(port uint16, own netip.AddrPort) error {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		err := steer(family, port, own)
		// A kernel without IPv6 has no such tables, and nothing to bring.
		if err != nil && (family == unix.AF_INET || six()) {
			return lacks(err, "the rules that bring the traffic cannot be set")
		}
	}
	var err error
	if own.IsValid() {
		err = route.Beside(own.Addr())
	}
	if err == nil {
		err = route.EverythingOfBoth()
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the sandbox's network cannot be made (%s)", err)
	}
	return nil
}

func lacks(err error, what string) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fault.Wrap(fault.Unsupported, err, "%s: the step has no right to it (%s)", what, err).WithRemedy("let the step's container have CAP_NET_ADMIN")
	}
	return fault.Wrap(fault.Unsupported, err, "%s (%s)", what, err).
		WithRemedy("the kernel that the sandbox runs on needs nf_tables with TPROXY: CONFIG_NF_TABLES, CONFIG_NF_TABLES_IPV4, CONFIG_NF_TABLES_IPV6 and CONFIG_NFT_TPROXY")
}

// Confined fails with the code Conflict if an interface is up that is not the loopback.
func Confined() error {
	list, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("list the sandbox's interfaces: %w", err)
	}
	for _, i := range list {
		if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 {
			return fault.New(fault.Conflict, "the sandbox has the network interface %s, by which it would get around the server", i.Name)
		}
	}
	return nil
}

// Socket makes a transparent socket, of IPv6 and IPv4 together where there is IPv6. kind is SOCK_STREAM or SOCK_DGRAM. It
// is not bound.
func Socket(kind int) (*os.File, error) {
	family := unix.AF_INET6
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		family = unix.AF_INET
		fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	}
	if err != nil {
		return nil, lacks(err, "a socket for the traffic cannot be made")
	}
	set := func(level, option, to int) {
		if err == nil {
			err = unix.SetsockoptInt(fd, level, option, to)
		}
	}
	set(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	set(unix.SOL_IP, unix.IP_TRANSPARENT, 1)
	if family == unix.AF_INET6 {
		set(unix.SOL_IPV6, unix.IPV6_V6ONLY, 0)
		set(unix.SOL_IPV6, unix.IPV6_TRANSPARENT, 1)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, lacks(err, "a socket cannot take what is sent to others")
	}
	return os.NewFile(uintptr(fd), "traffic"), nil
}

// six reports whether there is IPv6.
func six() bool {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err == nil
}
