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

// What Reach is told, how long each connection may take, and all of them together.
const (
	reachFirst   = "first"
	reachLast    = "last"
	tryPatience  = time.Second
	triesAtMost  = 5 * time.Second
	pauseOfTries = 100 * time.Millisecond
)

// ErrKept is that nothing was reached.
var ErrKept = errors.New("the API server is not reached")

// Reach tries to connect to the API server of the cluster in one of whose pods this is, by the address that all pods are told, and by
// another one, "" if there is none. The policies of a cluster's network come to hold a moment after a pod has begun: with first it ends as
// one of them is reached, with last as none is. It fails with ErrKept where none was in the end.
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
