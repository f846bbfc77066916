// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mux

import (
	"encoding/binary"
	"errors"
	"net"
)

// A frame of yamux begins with its version, type, flags (2 bytes), stream (4) and length (4), big endian.
const (
	headLen      = 12
	typeData     = 0
	typeWindow   = 1
	typeGoAway   = 3
	flagSYN      = 1
	maxOneFrame  = 256 << 10
	lengthOffset = 8
)

// errFrame ends a session.
var errFrame = errors.New("the agent sent a frame that none may send")

// frames is the connection below a session. It sends a frame's head together with its body, which yamux
// writes one after the other. Of what an agent sends it lets pass only what one has to send.
type frames struct {
	net.Conn
	checks bool // what comes is an agent's

	held []byte // a head whose body is due; for the one goroutine that writes

	// For the one goroutine that reads.
	head [headLen]byte
	have int // of head
	body int // bytes that are due before the next head
}

func (f *frames) Write(b []byte) (int, error) {
	if len(b) == headLen && len(f.held) == 0 && b[1] == typeData && binary.BigEndian.Uint32(b[lengthOffset:]) > 0 {
		f.held = append(f.held[:0], b...)
		return len(b), nil
	}
	if len(f.held) == 0 {
		return f.Conn.Write(b)
	}
	head := len(f.held)
	f.held = append(f.held, b...)
	n, err := f.Conn.Write(f.held)
	f.held = f.held[:0]
	if cap(f.held) > maxOneFrame/4 {
		f.held = nil
	}
	return max(0, n-head), err
}

func (f *frames) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if !f.checks {
		return n, err
	}
	for rest := b[:n]; len(rest) > 0; {
		if f.body > 0 {
			k := min(f.body, len(rest))
			f.body -= k
			rest = rest[k:]
			continue
		}
		k := copy(f.head[f.have:], rest)
		f.have += k
		rest = rest[k:]
		if f.have < headLen {
			break
		}
		f.have = 0
		length := binary.BigEndian.Uint32(f.head[lengthOffset:])
		flags := binary.BigEndian.Uint16(f.head[2:])
		switch {
		case flags&flagSYN != 0: // it opens no stream, and pings nobody
			return 0, errFrame
		case f.head[1] == typeData && length <= maxOneFrame:
			f.body = int(length)
		case f.head[1] != typeWindow && f.head[1] != typeGoAway:
			return 0, errFrame
		}
	}
	return n, err
}
