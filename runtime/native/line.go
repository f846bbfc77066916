// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/runtime"
)

// lineFor is how long a connection waits for a call: an agent at rest has none open. It is
// far less than an agent waits for the first words of one.
const lineFor = 3 * time.Second

// line holds the connection that the next call to an agent takes. To make one is 0.2 ms of
// a command's time, most of it until the agent has taken it. It is safe for concurrent use;
// its zero value is ready.
type line struct {
	mu    sync.Mutex
	conn  net.Conn    // nil: none waits
	timer *time.Timer // lets go of one that nobody took; nil: there was none yet
	over  bool
}

// lacks reports whether a connection would be kept.
func (n *line) lacks() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.conn == nil && !n.over
}

// keep takes a connection over.
func (n *line) keep(conn net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn != nil || n.over {
		_ = conn.Close()
		return
	}
	n.conn = conn
	if n.timer == nil {
		n.timer = time.AfterFunc(lineFor, n.drop)
		return
	}
	n.timer.Reset(lineFor)
}

// take returns the connection that waits; nil: there is none at whose other end somebody is.
func (n *line) take() net.Conn {
	n.mu.Lock()
	conn := n.conn
	if n.conn = nil; conn != nil {
		n.timer.Stop()
	}
	n.mu.Unlock()
	if conn == nil || quiet(conn) {
		return conn
	}
	_ = conn.Close()
	return nil
}

func (n *line) drop() {
	if conn := n.take(); conn != nil {
		_ = conn.Close()
	}
}

// close drops what waits, and keeps nothing more.
func (n *line) close() {
	n.mu.Lock()
	n.over = true
	n.mu.Unlock()
	n.drop()
}

// quiet reports whether a connection is open, and nothing came on it.
func quiet(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		open = err == unix.EAGAIN
	})
	return err == nil && open
}

var _ runtime.Expecter = (*Instance)(nil)

// Expect makes the connection of the next call. See [runtime.Expecter].
func (i *Instance) Expect() {
	i.mu.Lock()
	l := i.live
	idle := l == nil || l.paused
	i.mu.Unlock()
	if idle || !l.line.lacks() {
		return
	}
	if conn, err := i.connect(context.Background()); err == nil { // it takes no time, or fails
		l.line.keep(conn)
	}
}

// connect connects to the agent's socket, whose file no sandbox can see.
func (i *Instance) connect(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", i.d.socketPath(i.id))
}
