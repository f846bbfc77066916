// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Bounds of ports. They hold on both sides.
const (
	MaxPort      = 65535
	MaxPorts     = 1000 // that one answer tells of
	MaxPortText  = 64   // bytes of a command's or a user's name
	MaxPortConns = 256  // connections to ports of one sandbox at a time
)

// Ports is the answer to OpPorts, by port.
type Ports struct {
	Ports     []Port `json:"ports,omitempty"`
	Truncated bool   `json:"truncated,omitempty"` // there are more, or there was too much to look through
}

// Port is a socket that waits for others.
type Port struct {
	Port     int    `json:"port"`
	Protocol string `json:"protocol"`          // "tcp" or "udp"
	Address  string `json:"address"`           // that it is bound to
	PID      int    `json:"pid,omitempty"`     // inside; of several that hold it the lowest; 0: unknown
	Command  string `json:"command,omitempty"` // the process's name, which it chose itself
	User     string `json:"user"`              // who opened it: a name, or a number
}
