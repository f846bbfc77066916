// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package route

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Numbers of the rules that Beside sets, in the order in which they are asked. The kernel's own first one has 0, and its next 32766.
const (
	kernels = 0
	toOwn   = 1
	fromOwn = 2
	allElse = 3
)

// Numbers of rules that package unix does not have.
const (
	ruleTo, ruleFrom, ruleNumber = 1, 2, 6 // FRA_DST, FRA_SRC, FRA_PRIORITY
	askTable                     = 1       // FR_ACT_TO_TBL
)

// Beside has what is sent from own, an address of IPv4 that the calling thread's namespace has, go the usual way where all addresses
// are local otherwise, and what is sent to own come back in. It comes before EverythingOfBoth.
func Beside(own netip.Addr) error {
	if !own.Is4() {
		return fmt.Errorf("rules of routing: %s is no address of IPv4", own)
	}
	for _, r := range []struct {
		number   uint32
		to, from netip.Addr
		table    uint8
	}{
		{toOwn, own, netip.Addr{}, unix.RT_TABLE_LOCAL},
		{fromOwn, netip.Addr{}, own, unix.RT_TABLE_MAIN},
		{allElse, netip.Addr{}, netip.Addr{}, unix.RT_TABLE_LOCAL},
	} {
		m := rule(unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, r.number, r.to, r.from, r.table)
		if err := ask(m); err != nil && !errors.Is(err, unix.EEXIST) { // it was set before
			return fmt.Errorf("set a rule of routing: %w", err)
		}
	}
	// The kernel's first rule finds all local addresses, before any other is asked.
	m := rule(unix.RTM_DELRULE, 0, kernels, netip.Addr{}, netip.Addr{}, unix.RT_TABLE_LOCAL)
	if err := ask(m); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("replace the first rule of routing: %w", err)
	}
	return nil
}

// rule is a message of a rule that has a table asked, of IPv4. An address that is not valid is any.
func rule(what, flags uint16, number uint32, to, from netip.Addr, table uint8) []byte {
	m := make([]byte, 0, 64)
	m = order.AppendUint32(m, 0)
	m = order.AppendUint16(m, what)
	m = order.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags)
	m = order.AppendUint32(m, 1)
	m = order.AppendUint32(m, 0)
	// struct fib_rule_hdr: family, bits of destination and source, tos, table, two reserved, action, flags
	m = append(m, unix.AF_INET, uint8(bits(to)), uint8(bits(from)), 0, table, 0, 0, askTable)
	m = order.AppendUint32(m, 0)
	m = order.AppendUint16(m, 8)
	m = order.AppendUint16(m, ruleNumber)
	m = order.AppendUint32(m, number)
	for kind, a := range map[uint16]netip.Addr{ruleTo: to, ruleFrom: from} {
		if a.IsValid() {
			m = order.AppendUint16(m, 8)
			m = order.AppendUint16(m, kind)
			m = append(m, a.AsSlice()...)
		}
	}
	order.PutUint32(m, uint32(len(m))) //nolint:gosec // some 60
	return m
}

func bits(a netip.Addr) int {
	if a.IsValid() {
		return a.BitLen()
	}
	return 0
}
