// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"net"
	"sync"
)

// pipe is a listener whose connections are made within the process.
type pipe struct {
	gate   *gate
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipe(g *gate) *pipe {
	return &pipe{gate: g, conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipe) dial(ctx context.Context) (net.Conn, error) {
	near, far := duplex()
	return p.connect(ctx, near, newGatedConn(far, p.gate))
}

// dialPast is for the host's own calls: they reach the agent though its gate is shut.
func (p *pipe) dialPast(ctx context.Context) (net.Conn, error) {
	near, far := duplex()
	return p.connect(ctx, near, far)
}

func (p *pipe) connect(ctx context.Context, near, far net.Conn) (net.Conn, error) {
	var err error
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		err = net.ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = near.Close()
	_ = far.Close()
	return nil, err
}

// Accept waits for the next dial.
func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener and leaves its connections. Twice is fine.
func (p *pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr is of no use but for the interface.
func (p *pipe) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
