// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// kind is what a frame says.
type kind byte

const (
	// By the server.
	kindBegin kind = 1 // the session begins
	kindAdmit kind = 2 // number: how many connections more the agent may open
	kindRoom  kind = 3 // number: how many datagrams more it may send that belong to no path
	kindPath  kind = 4 // two addresses: datagrams from the first to the second are wanted, whatever room there is
	kindLeave kind = 5 // two addresses: not any more
	kindStop  kind = 6 // the agent takes no more traffic, and answers with kindStopped

	// By the agent, in answer to kindBegin and kindStop.
	kindNeed    kind = 10 // name of the abstract socket where it waits for the step
	kindReady   kind = 11 // traffic comes
	kindFailed  kind = 12 // a refusal, as JSON; the session ends
	kindStopped kind = 13
	kindOpen    kind = 14 // number: a new connection; its destination

	// By both; number is the connection's.
	kindData   kind = 20
	kindEnd    kind = 21 // nothing more is sent
	kindClose  kind = 22 // by the server: it neither sends nor reads any more
	kindReset  kind = 23 // the connection is over
	kindWindow kind = 24 // 4 bytes: how many bytes more may be sent

	kindDatagram kind = 30 // two addresses, from and to; number: how many were lost before it; the datagram
)

// Port is where both sockets inside are bound: answers to questions of names come from there.
const Port = 53

const (
	headLen     = 8
	maxPayload  = 32 << 10
	addressLen  = 18 // 16 of an IPv6 address, IPv4 mapped, and 2 of the port
	pathLen     = 2 * addressLen
	maxDatagram = 16 << 10 // longer ones are cut
	maxName     = 100      // bytes, of the abstract socket
)

var errFrame = errors.New("the other end of the traffic sent what it may not send")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errFrame, fmt.Sprintf(format, args...))
}

// frame is one that was read. The payload holds until the next is.
type frame struct {
	kind    kind
	number  uint32
	payload []byte
}

func appendHead(b []byte, k kind, number uint32, length int) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(k)<<24|uint32(length)) //nolint:gosec // at most maxPayload
	return binary.BigEndian.AppendUint32(b, number)
}

// reader takes frames off a stream.
type reader struct {
	r    io.Reader
	head [headLen]byte
	buf  []byte
}

func (r *reader) next() (frame, error) {
	if _, err := io.ReadFull(r.r, r.head[:]); err != nil {
		return frame{}, err
	}
	first := binary.BigEndian.Uint32(r.head[:])
	length := int(first & 0xff_ff_ff)
	if length > maxPayload {
		return frame{}, broken("a frame of %d bytes", length)
	}
	if cap(r.buf) < length {
		r.buf = make([]byte, max(length, min(maxPayload, 2*cap(r.buf))))
	}
	f := frame{kind: kind(first >> 24), number: binary.BigEndian.Uint32(r.head[4:]), payload: r.buf[:length]}
	if _, err := io.ReadFull(r.r, f.payload); err != nil {
		return frame{}, io.ErrUnexpectedEOF
	}
	return f, nil
}

func appendAddress(b []byte, a netip.AddrPort) []byte {
	ip := a.Addr().As16()
	return binary.BigEndian.AppendUint16(append(b, ip[:]...), a.Port())
}

func addressOf(b []byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[:16])).Unmap(), binary.BigEndian.Uint16(b[16:addressLen]))
}

// way is where datagrams go from and to.
type way struct{ from, to netip.AddrPort }

func (w way) append(b []byte) []byte { return appendAddress(appendAddress(b, w.from), w.to) }

func wayOf(b []byte) way { return way{addressOf(b), addressOf(b[addressLen:])} }
