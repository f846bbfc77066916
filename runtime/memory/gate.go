// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"net"
	"sync"

	"sandpit.dev/agent/server/view"
)

// gate stands between the agent and all that it does: its connections, its files
// and its forks. Shut, it makes the agent as good as frozen, though it lives in
// this process.
type gate struct {
	mu     sync.Mutex
	open   chan struct{} // closed while it is open
	inside sync.WaitGroup
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

// enter waits until the gate is open and goes in; leave has to follow. It is false
// where done was first; a nil done never is.
func (g *gate) enter(done <-chan struct{}) bool {
	for {
		g.mu.Lock()
		open := g.open
		select {
		case <-open:
			g.inside.Add(1)
			g.mu.Unlock()
			return true
		default:
		}
		g.mu.Unlock()
		select {
		case <-open:
		case <-done:
			return false
		}
	}
}

func (g *gate) leave() { g.inside.Done() }

// shut lets nobody in any more, and waits until nobody is inside.
func (g *gate) shut() {
	g.mu.Lock()
	g.open = make(chan struct{})
	g.mu.Unlock()
	g.inside.Wait()
}

// reopen undoes shut. The gate is shut.
func (g *gate) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
}

// gatedView is a view whose file operations and forks wait at the gate.
type gatedView struct {
	view.View
	gate *gate
}

func (v gatedView) Do(fn func()) {
	v.gate.enter(nil)
	defer v.gate.leave()
	v.View.Do(fn)
}

// Fork runs within Do.
func (v gatedView) Fork(fn func()) { v.View.(view.Forker).Fork(fn) }

// gatedConn is the agent's end of a connection. While the gate is shut it neither
// gives nor takes.
type gatedConn struct {
	net.Conn
	gate   *gate
	closed chan struct{}
	once   sync.Once
}

func newGatedConn(c net.Conn, g *gate) *gatedConn {
	return &gatedConn{Conn: c, gate: g, closed: make(chan struct{})}
}

// Read holds back what came in between.
func (c *gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.pass() {
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *gatedConn) Write(b []byte) (int, error) {
	if !c.pass() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *gatedConn) pass() bool {
	if !c.gate.enter(c.closed) {
		return false
	}
	c.gate.leave()
	return true
}

// Gone reports whether the other end is closed.
func (c *gatedConn) Gone() bool { return c.Conn.(*end).gone() }

func (c *gatedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
