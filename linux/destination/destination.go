// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package destination knows where datagrams were sent that a socket got which is bound to another address:
// the kernel says so in messages beside each. It is linked into the agent.
package destination

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Room is enough for the messages beside one datagram, in bytes.
const Room = 128

// Receive has the kernel add these messages to the datagrams of a socket; six: it is of IPv6, and has
// those of IPv4, too.
func Receive(fd int, six bool) error {
	err := unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_RECVORIGDSTADDR, 1)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
	}
	if err == nil && six {
		err = unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_RECVORIGDSTADDR, 1)
	}
	return err
}

// Of returns where a datagram was sent, by the messages beside it, not valid where they do not say it, and how
// many were dropped for lack of room since the socket was made.
func Of(oob []byte) (to netip.AddrPort, overflows uint32) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return to, 0
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_RXQ_OVFL && len(m.Data) >= 4 {
			overflows = binary.NativeEndian.Uint32(m.Data)
			continue
		}
		switch a, _ := unix.ParseOrigDstAddr(&m); a := a.(type) {
		case *unix.SockaddrInet4:
			to = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
		case *unix.SockaddrInet6:
			to = netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
		}
	}
	return to, overflows
}

// Source returns the message that has a datagram sent from an address.
func Source(from netip.Addr) []byte {
	if from.Is4() {
		oob := control(unix.SOL_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
		(*unix.Inet4Pktinfo)(unsafe.Pointer(&oob[unix.CmsgLen(0)])).Spec_dst = from.As4()
		return oob
	}
	oob := control(unix.SOL_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)
	(*unix.Inet6Pktinfo)(unsafe.Pointer(&oob[unix.CmsgLen(0)])).Addr = from.As16()
	return oob
}

// control makes a control message with room for size bytes.
func control(level, kind int32, size int) []byte {
	b := make([]byte, unix.CmsgSpace(size))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(size))
	return b
}
