// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Values of Reach's which.
const (
	reachFirst = "first"
	reachLast  = "last"
)

const (
	tryPatience = time.Second     // for one connection
	triesAtMost = 5 * time.Second // for all tries together
	// pauseOfTries is between two tries: nothing in a pod tells when a policy has come to hold, so that there is nothing to wait for but time.
	pauseOfTries = 100 * time.Millisecond
)

// ErrKept is returned by [Reach] if it reached nothing.
var ErrKept = errors.New("the API server is not reached")

// HasKernelStack reports whether the network that processes here see is the kernel's, which a step can configure. gVisor has one of its own.
func HasKernelStack() bool {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// Reach reports whether this pod can connect to its cluster's API server, at the address in its environment or at another, "" for none:
// the error is nil if one of them was reached in the last try, and [ErrKept] if none was. It tries several times, since policies of a cluster's
// network come to hold a moment after a pod began. With which "first" it returns once an address was reached, and with "last" once none was.
func Reach(which, another string) error {
	if which != reachFirst && which != reachLast {
		return fmt.Errorf("%q is neither first nor last", which)
	}
	var all []netip.AddrPort
	for _, text := range []string{net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")), another} {
		if to, err := netip.ParseAddrPort(text); err == nil {
			all = append(all, to)
		}
	}
	if len(all) == 0 {
		return errors.New("there is no address of the API server")
	}
	for limit := time.Now().Add(triesAtMost); ; time.Sleep(pauseOfTries) {
		reached := slices.ContainsFunc(all, func(to netip.AddrPort) bool { return connect(to) == nil })
		if reached == (which == reachFirst) || time.Now().After(limit) {
			if reached {
				return nil
			}
			return fmt.Errorf("%w at any of %v", ErrKept, all)
		}
	}
}

// connect makes a connection, and ends it. Package net would look names up, which makes the agent larger by a tenth.
func connect(to netip.AddrPort) error {
	family, address := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()})
	if to.Addr().Is4() {
		family, address = unix.AF_INET, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return errors.Join(connectWithin(fd, address, tryPatience), unix.Close(fd))
}

// connectWithin bounds how long a connection is waited for. gVisor does not heed SO_SNDTIMEO here.
func connectWithin(fd int, address unix.Sockaddr, patience time.Duration) error {
	if err := unix.Connect(fd, address); !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	limit := time.Now().Add(patience)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, max(0, int(time.Until(limit)/time.Millisecond)))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return os.ErrDeadlineExceeded
		default:
			code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			if err == nil && code != 0 {
				err = unix.Errno(code)
			}
			return err
		}
	}
}
