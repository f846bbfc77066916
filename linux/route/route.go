// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package route

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// loopback is the index of lo, which is the first interface of every namespace.
const loopback = 1

// order is that of the numbers in messages to the kernel.
var order = binary.NativeEndian

// Everything makes all addresses of a family local to the calling thread's
// namespace, or no longer. What is sent comes from the family's own loopback
// address: answers to it then pass as local.
func Everything(family uint8, local bool) error {
	from := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if family == unix.AF_INET6 {
		from = netip.IPv6Loopback()
	}
	what, flags := uint16(unix.RTM_NEWROUTE), uint16(unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	if !local {
		what, flags = unix.RTM_DELROUTE, 0
	}
	source := from.AsSlice()
	m := make([]byte, 0, 64)
	// struct nlmsghdr: length, type, flags, number, sender
	m = order.AppendUint32(m, 0)
	m = order.AppendUint16(m, what)
	m = order.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags)
	m = order.AppendUint32(m, 1)
	m = order.AppendUint32(m, 0)
	// struct rtmsg: family, bits of destination and source, tos, table, protocol, scope, type, flags
	m = append(m, family, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST, unix.RTN_LOCAL)
	m = order.AppendUint32(m, 0)
	// struct rtattr: length, type, value
	m = order.AppendUint16(m, 8)
	m = order.AppendUint16(m, unix.RTA_OIF)
	m = order.AppendUint32(m, loopback)
	m = order.AppendUint16(m, uint16(4+len(source)))
	m = order.AppendUint16(m, unix.RTA_PREFSRC)
	m = append(m, source...)
	order.PutUint32(m, uint32(len(m)))
	return ask(m)
}

// EverythingOfBoth makes all addresses of IPv4 and IPv6 local to the calling thread's namespace. Where the
// kernel has no IPv6, there is nothing of it to make local.
func EverythingOfBoth() error {
	if err := Everything(unix.AF_INET, true); err != nil {
		return fmt.Errorf("make all addresses local: %w", err)
	}
	err := Everything(unix.AF_INET6, true)
	if errors.Is(err, unix.EACCES) && switchOnIPv6() == nil { // it was off, here or on the whole host
		err = Everything(unix.AF_INET6, true)
	}
	if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("make all IPv6 addresses local: %w", err)
	}
	return nil
}

// switchOnIPv6 enables IPv6 in the calling thread's network namespace, where its maker disabled it. The
// loopback interface then has its address.
func switchOnIPv6() error {
	return os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("0"), 0o644)
}

// ask sends one message to the kernel's routing and returns what it answers.
func ask(message []byte) error {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	if err := unix.Sendto(s, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(s, answer, 0)
	if err != nil {
		return err
	}
	const header = unix.SizeofNlMsghdr
	if n < header+4 || order.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return fmt.Errorf("routing answered with %d bytes that are no acknowledgement", n)
	}
	if errno := -int32(order.Uint32(answer[header:])); errno != 0 {
		return unix.Errno(errno)
	}
	return nil
}
