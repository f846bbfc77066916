// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"sandpit.dev/fault"
)

const (
	// maxQueued is how many datagrams that belong to no path wait to be read. The kernel inside keeps more.
	maxQueued = 64
	// stopPatience is how long Close waits for the agent to take no more traffic. One that is frozen does not answer.
	stopPatience = time.Second
)

// Server is the server's end of a session: what a sandbox sends to the world. It is safe for concurrent use.
type Server struct {
	s      *session
	begun  chan error // once: kindReady or kindFailed
	need   chan string
	ended  chan struct{} // kindStopped came
	opened chan *Conn
	once   sync.Once
	work   sync.WaitGroup

	mu       sync.Mutex
	admitted int // connections that the agent may open
	last     uint32
	paths    map[way]*path
	queue    []datagram
	some     chan struct{} // of room for one
	lost     int64
}

type datagram struct {
	way  way
	data []byte
}

// Begin has the agent at the other end of nc bring its traffic. nc is the server's own from now on. If the agent
// has no sockets yet, it waits for a [Step] with the name that prepare is called with; prepare's context ends when
// the step was taken, or has failed. ctx bounds the beginning.
func Begin(ctx context.Context, nc net.Conn, prepare func(ctx context.Context, socket string) error) (_ *Server, err error) {
	t := &Server{
		s: newSession(nc, serverPool), begun: make(chan error, 1), need: make(chan string, 1), ended: make(chan struct{}),
		opened: make(chan *Conn, 1), paths: make(map[way]*path), some: make(chan struct{}, 1),
	}
	t.work.Go(t.s.write)
	t.work.Go(t.read)
	defer func() {
		if err != nil {
			t.s.fail(net.ErrClosed)
			t.work.Wait()
		}
	}()
	t.s.say(kindBegin, 0, nil)
	pctx, done := context.WithCancel(ctx)
	defer done()
	prepared := make(chan error, 1)
	var preparing sync.WaitGroup
	defer preparing.Wait()
	defer done()
	for {
		select {
		case name := <-t.need:
			preparing.Go(func() {
				if err := prepare(pctx, name); err != nil {
					prepared <- err
				}
			})
		case err := <-prepared:
			select { // what the agent says comes first
			case said := <-t.begun:
				if said != nil {
					return nil, said
				}
				t.s.say(kindRoom, maxQueued, nil)
				return t, nil
			default:
			}
			return nil, err
		case err := <-t.begun:
			if err != nil {
				return nil, err
			}
			t.s.say(kindRoom, maxQueued, nil)
			return t, nil
		case <-t.s.over:
			return nil, fault.Wrap(fault.Unavailable, t.s.why(), "the connection to the sandbox's agent broke (%s)", t.s.why())
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// read handles what the agent sends, until the session is over.
func (t *Server) read() {
	r := &reader{r: t.s.nc}
	for {
		f, err := r.next()
		if err == nil {
			err = t.handle(f)
		}
		if err != nil {
			t.s.fail(err)
			return
		}
	}
}

func (t *Server) handle(f frame) error {
	switch f.kind {
	case kindNeed:
		if len(f.payload) == 0 || len(f.payload) > maxName || bytes.ContainsFunc(f.payload, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) {
			return broken("a socket's name of %d bytes", len(f.payload))
		}
		select {
		case t.need <- string(f.payload):
		default:
			return broken("it needs a step twice")
		}
	case kindReady, kindFailed:
		var said error
		if f.kind == kindFailed {
			said = readRefusal(f.payload)
		}
		select {
		case t.begun <- said:
		default:
			return broken("it begins twice")
		}
	case kindStopped:
		t.once.Do(func() { close(t.ended) })
	case kindOpen:
		return t.open(f)
	case kindDatagram:
		return t.receive(f)
	case kindClose:
		return broken("a frame of kind %d", f.kind)
	default:
		return t.s.receive(f)
	}
	return nil
}

// open takes a new connection.
func (t *Server) open(f frame) error {
	if len(f.payload) != pathLen {
		return broken("a destination of %d bytes", len(f.payload))
	}
	w := wayOf(f.payload)
	t.mu.Lock()
	ok := t.admitted > 0 && f.number == t.last+1
	t.admitted--
	t.last++
	t.mu.Unlock()
	if !ok {
		return broken("connection %d was not asked for", f.number)
	}
	st := t.s.stream(f.number)
	if !t.s.add(st) {
		return net.ErrClosed
	}
	t.opened <- &Conn{st: st, to: net.TCPAddrFromAddrPort(w.to), from: net.TCPAddrFromAddrPort(w.from)} // one was asked for, and there is room for one
	return nil
}

// Accept returns the next TCP connection. Its LocalAddr is the destination that the sandbox meant. One call at a time.
func (t *Server) Accept() (*Conn, error) {
	t.mu.Lock()
	if t.admitted == 0 && len(t.opened) == 0 {
		t.admitted++
		t.s.say(kindAdmit, 1, nil)
	}
	t.mu.Unlock()
	select {
	case c := <-t.opened:
		return c, nil
	case <-t.s.over:
		return nil, net.ErrClosed
	}
}

// receive takes a datagram.
func (t *Server) receive(f frame) error {
	if len(f.payload) < pathLen || len(f.payload) > pathLen+maxDatagram {
		return broken("a datagram of %d bytes", len(f.payload))
	}
	d := datagram{wayOf(f.payload), bytes.Clone(f.payload[pathLen:])}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost += int64(f.number)
	if p := t.paths[d.way]; p != nil {
		select {
		case p.come <- d.data:
		default:
			t.lost++
		}
		return nil
	}
	if len(t.queue) >= 2*maxQueued { // what was on its way on a path that has ended comes beside what was asked for
		return broken("more datagrams than were asked for")
	}
	t.queue = append(t.queue, d)
	notify(t.some)
	return nil
}

// Wait waits until there is a datagram to Read, or nothing more to wait for.
func (t *Server) Wait() error {
	for {
		t.mu.Lock()
		n := len(t.queue)
		t.mu.Unlock()
		if n > 0 {
			return nil
		}
		select {
		case <-t.some:
		case <-t.s.over:
			return net.ErrClosed
		}
	}
}

// Read returns the next datagram, its sender inside, and its destination. A datagram that is longer than b is cut.
func (t *Server) Read(b []byte) (n int, from, to netip.AddrPort, err error) {
	for {
		if err := t.Wait(); err != nil {
			return 0, from, to, err
		}
		t.mu.Lock()
		if len(t.queue) == 0 { // another call was faster
			t.mu.Unlock()
			continue
		}
		d := t.queue[0]
		if t.queue = t.queue[1:]; len(t.queue) == 0 {
			t.queue = nil
		}
		t.mu.Unlock()
		t.s.say(kindRoom, 1, nil)
		return copy(b, d.data), d.way.from, d.way.to, nil
	}
}

// Lost returns how many datagrams were dropped since the last call.
func (t *Server) Lost() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.lost
	t.lost = 0
	return n
}

// Answer sends a datagram to a socket inside, from port 53 of an address. One for which there is no room is lost.
func (t *Server) Answer(b []byte, from netip.Addr, to netip.AddrPort) error {
	select {
	case <-t.s.over:
		return net.ErrClosed
	default:
	}
	if len(b) <= maxDatagram {
		t.s.datagram(way{netip.AddrPortFrom(from, Port), to}, 0, b, false)
	}
	return nil
}

// Close ends the traffic, and resets its connections. Afterwards connections of the sandbox are refused, at
// once where the agent answers. Calling it twice is fine.
func (t *Server) Close() error {
	t.s.say(kindStop, 0, nil)
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case <-t.ended:
	case <-t.s.over:
	case <-patience.C:
	}
	t.s.fail(net.ErrClosed)
	t.work.Wait()
	return nil
}
