// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
)

// Listener bounds the connections that have not shown a valid token or signed link yet: all of
// them together, and those of one address to half of that. At the bound, a new connection
// replaces the oldest, first among those that wait: so a client with a token is answered however
// many others there are, even of its own address, which everyone behind a proxy shares. A
// connection that has shown a token no longer counts.
//
// The server that it is for has Context and State.
type Listener struct {
	net.Listener
	*unproven
}

// unproven are the connections that count, of listeners that have one bound together.
type unproven struct {
	most, mostOf int

	mu  sync.Mutex
	all *list.List // of *conn, the oldest first
	of  map[netip.Prefix]int
}

// NewListener bounds the connections of l, of TCP, to most, at least 2.
func NewListener(l net.Listener, most int) *Listener {
	return &Listener{l, &unproven{most: most, mostOf: most / 2, all: list.New(), of: make(map[netip.Prefix]int)}}
}

// Beside returns another listener's, whose connections and l's have one bound together.
func (l *Listener) Beside(other net.Listener) *Listener { return &Listener{other, l.unproven} }

// conn is a connection to the server. The connection of TCP is embedded: it is copied to by
// the kernel itself.
type conn struct {
	*net.TCPConn
	l      *unproven
	from   netip.Prefix
	place  *list.Element // nil: it does not count; l.mu guards it
	proven atomic.Bool
	busy   atomic.Bool // a request is being answered
}

// Accept takes the next connection, for which another may go.
func (l *Listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc, nil
	}
	c := &conn{TCPConn: tcp, l: l.unproven, from: origin(tcp)}
	if gone := l.enter(c); gone != nil {
		_ = gone.SetLinger(0) // what it sent is of no use
		_ = gone.TCPConn.Close()
	}
	return c, nil
}

// origin is what counts as one address: all that a host of IPv6 chooses from.
func origin(c *net.TCPConn) netip.Prefix {
	a, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	return network(a.AddrPort().Addr())
}

// enter counts c, and returns the one that has to go for it, if any.
func (l *unproven) enter(c *conn) (gone *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.of[c.from] >= l.mostOf:
		gone = l.oldest(func(o *conn) bool { return o.from == c.from })
	case l.all.Len() >= l.most:
		gone = l.oldest(func(*conn) bool { return true })
	}
	if gone != nil {
		l.remove(gone)
	}
	c.place = l.all.PushBack(c)
	l.of[c.from]++
	return gone
}

// oldest finds the oldest connection that waits, or is half of a request, and else the oldest
// whose request is being answered.
func (l *unproven) oldest(of func(*conn) bool) (oldest *conn) {
	for e := l.all.Front(); e != nil; e = e.Next() {
		c := e.Value.(*conn)
		if !of(c) {
			continue
		}
		if !c.busy.Load() {
			return c
		}
		if oldest == nil {
			oldest = c
		}
	}
	return oldest
}

func (l *unproven) remove(c *conn) {
	if c.place == nil {
		return
	}
	l.all.Remove(c.place)
	c.place = nil
	if l.of[c.from]--; l.of[c.from] == 0 {
		delete(l.of, c.from)
	}
}

func (c *conn) leave() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.l.remove(c)
}

// Close closes the connection.
func (c *conn) Close() error {
	c.leave()
	return c.TCPConn.Close()
}

// prove records that the connection's client has shown a valid token.
func (c *conn) prove() {
	if !c.proven.Load() && c.proven.CompareAndSwap(false, true) {
		c.leave()
	}
}

// State is [http.Server.ConnState].
func (l *Listener) State(nc net.Conn, s http.ConnState) {
	if c := ours(nc); c != nil {
		c.busy.Store(s == http.StateActive || s == http.StateHijacked)
	}
}

// ours returns the connection that a server of the listener has, of TLS too; nil: it is no TCP.
func ours(nc net.Conn) *conn {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	c, _ := nc.(*conn)
	return c
}

type connKey struct{}

// Context is [http.Server.ConnContext].
func (l *Listener) Context(ctx context.Context, nc net.Conn) context.Context {
	if c := ours(nc); c != nil {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// Proven records that the client of the request that ctx belongs to has shown a valid token, or a
// link. [Guard.Wrap] calls it.
func Proven(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.prove()
	}
}
