// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"io"
	"net"
	"sync/atomic"
	"time"
)

// Conn is a TCP connection from inside, as the server has it.
type Conn struct {
	st       *stream
	to, from *net.TCPAddr
	abrupt   atomic.Bool
}

// Read reads what the program inside sends. After its end it is io.EOF.
func (c *Conn) Read(b []byte) (int, error) { return c.st.read(b) }

// WriteTo writes all that the program inside sends to w.
func (c *Conn) WriteTo(w io.Writer) (int64, error) { return c.st.writeTo(w) }

// Write sends to the program inside. It blocks while that takes nothing.
func (c *Conn) Write(b []byte) (int, error) { return c.st.write(b) }

// CloseWrite sends the end of what is sent. The other direction goes on.
func (c *Conn) CloseWrite() error { return c.st.end() }

// SetLinger is that of net.TCPConn: after SetLinger(0), Close resets the connection. Otherwise what was
// written is still delivered.
func (c *Conn) SetLinger(seconds int) error {
	c.abrupt.Store(seconds == 0)
	return nil
}

// Close ends the connection. It does not block. Calling it twice is fine.
func (c *Conn) Close() error {
	c.st.close(c.abrupt.Load())
	return nil
}

// LocalAddr is the destination that the program inside meant.
func (c *Conn) LocalAddr() net.Addr { return c.to }

// RemoteAddr is the program's own.
func (c *Conn) RemoteAddr() net.Addr { return c.from }

// SetDeadline, SetReadDeadline and SetWriteDeadline are as in net.Conn. After a deadline both directions go
// on where they were.
func (c *Conn) SetDeadline(t time.Time) error {
	c.st.readUntil.set(t)
	c.st.writeUntil.set(t)
	return nil
}

// SetReadDeadline is that of reads alone.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.st.readUntil.set(t)
	return nil
}

// SetWriteDeadline is that of writes alone.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.st.writeUntil.set(t)
	return nil
}
