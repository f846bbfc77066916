// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "net/netip"

// MaxPort is the highest number of a port.
const MaxPort = 65535

// Port is a listening socket inside. Command is the name that a process chose for itself: do not
// rely on it.
type Port struct {
	Port     int
	Protocol string     // "tcp" or "udp"
	Address  netip.Addr // that it is bound to; unspecified: to all
	PID      int        // inside; of several processes that hold it the lowest; 0: unknown
	Command  string     // at most 64 bytes, printable
	User     string     // "sandbox", "root", or a number
}
