// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tproxy

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// order is that of the kernel's own numbers in messages; those of nf_tables are in network order.
var order = binary.NativeEndian

// attribute is a struct nlattr with its value, padded.
func attribute(kind uint16, value []byte) []byte {
	b := order.AppendUint16(nil, uint16(4+len(value))) //nolint:gosec // some hundred bytes
	b = order.AppendUint16(b, kind)
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// nested is an attribute of attributes.
func nested(kind uint16, parts ...[]byte) []byte {
	var value []byte
	for _, p := range parts {
		value = append(value, p...)
	}
	return attribute(kind|unix.NLA_F_NESTED, value)
}

func text(kind uint16, s string) []byte { return attribute(kind, append([]byte(s), 0)) }

func number(kind uint16, n uint32) []byte {
	return attribute(kind, binary.BigEndian.AppendUint32(nil, n))
}

// batch is messages to nf_tables that take effect together, or not at all.
type batch struct {
	b   []byte
	seq uint32
}

// message appends one, with struct nfgenmsg: family, version, resource.
func (m *batch) message(kind, flags uint16, family uint8, resource uint16, parts ...[]byte) {
	at := len(m.b)
	m.seq++
	m.b = order.AppendUint32(m.b, 0)
	m.b = order.AppendUint16(m.b, kind)
	m.b = order.AppendUint16(m.b, unix.NLM_F_REQUEST|flags)
	m.b = order.AppendUint32(m.b, m.seq)
	m.b = order.AppendUint32(m.b, 0)
	m.b = append(m.b, family, 0)
	m.b = binary.BigEndian.AppendUint16(m.b, resource)
	for _, p := range parts {
		m.b = append(m.b, p...)
	}
	order.PutUint32(m.b[at:], uint32(len(m.b)-at)) //nolint:gosec // some thousand bytes
}

// add appends a message that nf_tables acknowledges.
func (m *batch) add(kind, flags uint16, family uint8, parts ...[]byte) {
	m.message(unix.NFNL_SUBSYS_NFTABLES<<8|kind, flags|unix.NLM_F_ACK, family, 0, parts...)
}

// commit sends it, and returns the first error that nf_tables answers with.
func commit(fill func(m *batch)) error {
	const begin, end = 0x10, 0x11 // NFNL_MSG_BATCH_BEGIN and _END
	m := new(batch)
	m.message(begin, 0, 0, unix.NFNL_SUBSYS_NFTABLES)
	first := m.seq + 1
	fill(m)
	last := m.seq
	m.message(end, 0, 0, unix.NFNL_SUBSYS_NFTABLES)

	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	// An answer that does not come would be waited for without end.
	if err := unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}); err != nil {
		return err
	}
	if err := unix.Sendto(s, m.b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 32<<10)
	for seen := first; seen <= last; {
		n, _, err := unix.Recvfrom(s, answer, 0)
		if err != nil {
			return err
		}
		for rest := answer[:n]; len(rest) > 0; {
			if len(rest) < unix.SizeofNlMsghdr+4 {
				return fmt.Errorf("nf_tables answered with %d bytes that are no message", len(rest))
			}
			size := (int(order.Uint32(rest)) + 3) &^ 3
			if size < unix.SizeofNlMsghdr+4 || size > len(rest) || order.Uint16(rest[4:]) != unix.NLMSG_ERROR {
				return fmt.Errorf("nf_tables answered with %d bytes that are no acknowledgement", len(rest))
			}
			if errno := -int32(order.Uint32(rest[unix.SizeofNlMsghdr:])); errno != 0 {
				return unix.Errno(errno)
			}
			seen++
			rest = rest[size:]
		}
	}
	return nil
}
