// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package steer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// Confined fails unless a network namespace is of the kind that Open takes from others: one that is not
// the caller's, and whose interfaces are down but for its loopback. The code is Conflict.
func Confined(netns *os.File) error {
	var its, ours unix.Stat_t
	err := held(netns, func(ns int) error { return unix.Fstat(ns, &its) })
	if err == nil {
		err = unix.Stat("/proc/thread-self/ns/net", &ours)
	}
	if err != nil {
		return fmt.Errorf("look at the network namespace: %w", err)
	}
	if its.Dev == ours.Dev && its.Ino == ours.Ino {
		return fault.New(fault.Conflict, "the sandbox has the host's network, and none of its own")
	}
	var list []net.Interface
	err = within(netns, func() (err error) {
		list, err = net.Interfaces()
		return err
	})
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

// Try steers a namespace that it makes, and ends it: its error is Open's wherever this process has not
// the rights, or the kernel not the means.
func Try() error {
	done := make(chan error, 1)
	go func() { done <- tryApart() }()
	return <-done
}

// tryApart runs try on a thread that is in another network meanwhile, in a goroutine that ends with it.
func tryApart() error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() { _ = home.Close() }()
	err = try()
	// The process's first thread would not end with its goroutine.
	if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
		runtime.UnlockOSThread()
	}
	return err
}

func try() (err error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fault.Wrap(fault.Unsupported, err, "the server may make no network namespaces (%s)", err).WithRemedy("run it as root")
	}
	if err := loopbackUp(); err != nil {
		return fault.Wrap(fault.Unsupported, err, "the server may configure no network (%s)", err).WithRemedy("run it as root")
	}
	netns, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return fault.Wrap(fault.Unsupported, err, "the server cannot open a network namespace (%s)", err)
	}
	defer func() { err = errors.Join(err, netns.Close()) }()
	s, err := Open(netns)
	if err != nil {
		return err
	}
	return s.Close()
}

// loopbackUp brings up the loopback of the calling thread's namespace.
func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr)
}
