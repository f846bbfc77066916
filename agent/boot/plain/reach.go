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
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	patience := unix.NsecToTimeval(int64(tryPatience)) // also of a connection that is being made
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &patience)
	if err == nil {
		err = unix.Connect(fd, address)
	}
	return errors.Join(err, unix.Close(fd))
}
