// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"net"
	"net/netip"
)

// Networker is implemented by instances whose traffic can be brought to the server.
type Networker interface {
	// Steer brings all that the instance sends to other addresses than its own loopback's to the
	// server, from then on; without it nothing leaves. One call at a time; when it ends
	// (Traffic.Close, the instance's end or the server's) nothing leaves again. On an instance
	// that is down it is fault.State.
	Steer(ctx context.Context) (Traffic, error)
}

// Conn is a TCP connection from inside. Where the kernel has both ends it is a *net.TCPConn, which
// [io.Copy] passes on to another one without copying.
type Conn interface {
	net.Conn // LocalAddr is a *net.TCPAddr
	// CloseWrite sends the end of what is sent. The other direction goes on.
	CloseWrite() error
	// SetLinger is that of net.TCPConn: after SetLinger(0), Close resets the connection.
	SetLinger(seconds int) error
}

// KernelTraffic is a Traffic whose connections are sockets of this process.
type KernelTraffic interface {
	Accept() (*net.TCPConn, error)
	Wait() error
	Read(b []byte) (n int, from, to netip.AddrPort, err error)
	Lost() int64
	Answer(b []byte, from netip.Addr, to netip.AddrPort) error
	Answering(from, to netip.AddrPort) (*net.UDPConn, error)
	Close() error
}

// FromKernel returns t as a Traffic.
func FromKernel(t KernelTraffic) Traffic { return kernelTraffic{t} }

type kernelTraffic struct{ KernelTraffic }

func (t kernelTraffic) Accept() (Conn, error) {
	c, err := t.KernelTraffic.Accept()
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (t kernelTraffic) Answering(from, to netip.AddrPort) (net.Conn, error) {
	c, err := t.KernelTraffic.Answering(from, to)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Traffic is what an instance sends to the world. It is safe for concurrent use.
type Traffic interface {
	// Accept returns the next TCP connection. Its LocalAddr is the destination that the sandbox
	// meant.
	Accept() (Conn, error)
	// Wait waits until there is a datagram to Read, or nothing more to wait for. It may be wrong,
	// and Read then waits.
	Wait() error
	// Read returns the next datagram, its sender inside, and its destination. A datagram that is
	// longer than b is cut.
	Read(b []byte) (n int, from, to netip.AddrPort, err error)
	// Lost returns how many datagrams were dropped for lack of buffer space since the last call,
	// as of the last Read. The caller of Read calls it.
	Lost() int64
	// Answer sends a datagram to a socket inside, from port 53 of an address.
	Answer(b []byte, from netip.Addr, to netip.AddrPort) error
	// Answering returns a socket whose datagrams come from the address from and go to the socket
	// inside at to; what that sends there later goes to the returned socket, and no longer to
	// Read.
	Answering(from, to netip.AddrPort) (net.Conn, error)
	// Close ends the traffic, and breaks connections that were accepted: end those first. Calling
	// it twice is fine.
	Close() error
}
