// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package handshake

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

const (
	headLen   = 2
	sumLen    = 16
	maxRecord = 1<<16 - 1 // bytes that it carries
	nonceSize = 12
	firstRoom = 4 << 10 // of what is read at once, until a record needs more
)

// ErrForged is in the error of a connection over which something came that its other end did not send so.
var ErrForged = errors.New("what came over the connection was changed on its way")

// Conn is a connection whose bytes go in sealed records. After a deadline both directions go on
// where they were: what Write says that it took is sent before what it takes next. It is safe for
// concurrent use, as a net.Conn is.
type Conn struct {
	net.Conn

	readMu sync.Mutex
	open   sealer
	raw    []byte // read, and not yet opened
	room   []byte // whose beginning raw lies in
	plain  []byte // opened, and not yet given; in room, too
	err    error  // for ever

	writeMu sync.Mutex
	seal    sealer
	rest    []byte // of records that were sealed, what is not yet sent
	out     []byte // where they are sealed
}

// sealer is one direction.
type sealer struct {
	cipher.AEAD
	nonce [nonceSize]byte // the number of the next record
}

// next is the nonce of the next record.
func (s *sealer) next() []byte {
	n := s.nonce
	for i := len(s.nonce) - 1; i >= 0; i-- {
		if s.nonce[i]++; s.nonce[i] != 0 {
			break
		}
	}
	return n[:]
}

func newSealer(key []byte) (sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, err
	}
	gcm, err := cipher.NewGCM(block)
	return sealer{AEAD: gcm}, err
}

func newConn(nc net.Conn, opens, seals []byte) (*Conn, error) {
	c := &Conn{Conn: nc}
	var err error
	if c.open, err = newSealer(opens); err == nil {
		c.seal, err = newSealer(seals)
	}
	return c, err
}

// Read reads what the other end has sent.
func (c *Conn) Read(b []byte) (int, error) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	for len(c.plain) == 0 && len(b) > 0 {
		if c.err != nil {
			return 0, c.err
		}
		if err := c.moreLocked(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.plain)
	c.plain = c.plain[n:]
	return n, nil
}

// moreLocked opens the next record, or reads some of it.
func (c *Conn) moreLocked() error {
	need := headLen
	if len(c.raw) >= headLen {
		need = headLen + int(binary.BigEndian.Uint16(c.raw)) + sumLen
	}
	if len(c.raw) >= need && need > headLen {
		plain, err := c.open.Open(c.raw[headLen:headLen], c.open.next(), c.raw[headLen:need], c.raw[:headLen])
		if err != nil {
			c.err = &net.OpError{Op: "read", Net: "sealed", Err: ErrForged}
			return c.err
		}
		c.plain, c.raw = plain, c.raw[need:]
		return nil
	}
	// Nothing is given out yet of what lies before raw.
	if len(c.room) < need {
		room := make([]byte, max(need, firstRoom))
		c.raw = room[:copy(room, c.raw)]
		c.room = room
	} else {
		c.raw = c.room[:copy(c.room, c.raw)]
	}
	n, err := c.Conn.Read(c.room[len(c.raw):])
	c.raw = c.room[:len(c.raw)+n]
	if n > 0 {
		return nil
	}
	if errors.Is(err, io.EOF) && len(c.raw) > 0 {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// Write seals b and sends it. With nothing it sends what is left of what it took before.
func (c *Conn) Write(b []byte) (int, error) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	taken := 0
	for {
		if len(c.rest) > 0 {
			n, err := c.Conn.Write(c.rest)
			if c.rest = c.rest[n:]; err != nil {
				return taken, err
			}
		}
		if len(b) == 0 {
			return taken, nil
		}
		piece := b[:min(len(b), maxRecord)]
		c.out = binary.BigEndian.AppendUint16(c.out[:0], uint16(len(piece))) //nolint:gosec // at most maxRecord
		c.out = c.seal.Seal(c.out, c.seal.next(), piece, c.out[:headLen])
		c.rest, b = c.out, b[len(piece):]
		taken += len(piece)
	}
}

// Close closes the connection.
func (c *Conn) Close() error { return c.Conn.Close() }

// SyscallConn returns the connection that carries the records, to ask the kernel of its state. What
// is read or written by it breaks this one.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if sc, ok := c.Conn.(syscall.Conn); ok {
		return sc.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
