// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Carried is how many bytes a sandbox got from other hosts, and sent to them: what TCP and UDP carry, without their own
// headers, and without the names that were asked for.
type Carried struct{ In, Out int64 }

// Counter counts what gates carry. Of an open connection that is passed on as it is the kernel is asked when somebody looks:
// carrying costs nothing more. Its zero value has counted nothing. It is safe for concurrent use.
type Counter struct {
	in, out atomic.Int64 // of what is not in live

	mu   sync.Mutex
	live map[*net.TCPConn]struct{} // to other hosts
	last Carried
}

// Carried returns what was carried so far. It never falls.
func (c *Counter) Carried() Carried {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := Carried{In: c.in.Load(), Out: c.out.Load()}
	for conn := range c.live {
		in, out := carriedBy(conn)
		sum.In += in
		sum.Out += out
	}
	// What ends with an error may be told to have had less than the kernel had.
	c.last = Carried{In: max(c.last.In, sum.In), Out: max(c.last.Out, sum.Out)}
	return c.last
}

// carriedBy asks the kernel; zero where the connection is closed.
func carriedBy(c *net.TCPConn) (in, out int64) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0
	}
	_ = raw.Control(func(fd uintptr) {
		if i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			in, out = int64(i.Bytes_received), max(int64(i.Bytes_acked)-1, 0) // it counts the SYN
		}
	})
	return in, out
}

// begin has a connection counted, until end.
func (c *Counter) begin(conn *net.TCPConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == nil {
		c.live = make(map[*net.TCPConn]struct{})
	}
	c.live[conn] = struct{}{}
}

// end counts in and out in place of what the kernel says of a connection.
func (c *Counter) end(conn *net.TCPConn, in, out int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.live, conn)
	c.in.Add(in)
	c.out.Add(out)
}
