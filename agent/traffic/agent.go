// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package traffic

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/tproxy"
)

// Bounds of the agent's.
const (
	maxConns    = 1500             // with those whose last bytes a program has not taken
	lastBytes   = 10 * time.Second // how long it may take for these
	acceptPause = 50 * time.Millisecond
	largePieces = 32       // that are read at once; more are small
	smallPiece  = 4 << 10  // bytes
	sessionHeap = 24 << 20 // by which the bound of the heap is higher while there is a session
	maxPaths    = 1 << 10  // of datagrams
	maxRoom     = 1 << 20  // datagrams that may be asked for ahead
	maxAdmitted = 1 << 20  // connections
)

// Agent is the agent's end: it has sockets for sessions to come, and the session if there is one.
type Agent struct {
	// Reached: the agent is reached over an interface beside the loopback. What else is sent there, the step's rules keep back.
	Reached bool

	turn chan struct{} // held by the session that has the sockets

	mu      sync.Mutex
	current *session

	pairs []pair // of sockets that are not used yet; guarded by turn
}

// NewAgent makes one that has no sockets yet.
func NewAgent() *Agent { return &Agent{turn: make(chan struct{}, 1)} }

// inside is a session of an agent.
type inside struct {
	*session
	agent  *Agent
	work   sync.WaitGroup
	large  atomic.Int32 // pieces that are being carried
	pieces sync.Pool    // of *[maxPayload]byte

	// Guarded by session.mu, whose wake is broadcast when they change.
	admitted int
	room     int
	paths    map[way]struct{}
	sockets  *sockets // nil: it has not begun, or was stopped
	stopped  bool
	conns    int
}

// Carry is a session over nc, which it closes. It ends with nc, with ctx, or when another begins.
func (a *Agent) Carry(ctx context.Context, nc net.Conn) error {
	i := &inside{session: newSession(nc, agentPool), agent: a, paths: make(map[way]struct{})}
	a.mu.Lock()
	before := a.current
	a.current = i.session
	a.mu.Unlock()
	if before != nil {
		before.fail(net.ErrClosed)
	}
	stop := context.AfterFunc(ctx, func() { i.fail(net.ErrClosed) })
	defer stop()
	select {
	case a.turn <- struct{}{}:
	case <-i.over:
		return i.why()
	}
	defer func() { <-a.turn }()
	if was := debug.SetMemoryLimit(-1); was < math.MaxInt64-sessionHeap {
		debug.SetMemoryLimit(was + sessionHeap)
		defer debug.SetMemoryLimit(was)
	}
	i.work.Go(i.write)
	i.fail(i.read())
	i.stop()
	i.work.Wait()
	a.mu.Lock()
	if a.current == i.session {
		a.current = nil
	}
	a.mu.Unlock()
	return i.why()
}

// read handles what the server sends.
func (i *inside) read() error {
	r := &reader{r: i.nc}
	begun := false
	for {
		f, err := r.next()
		if err != nil {
			return err
		}
		switch f.kind {
		case kindBegin:
			if begun {
				return broken("it begins twice")
			}
			begun = true
			i.work.Go(i.begin)
		case kindStop:
			i.stop()
			i.say(kindStopped, 0, nil)
		case kindAdmit:
			i.change(func() { i.admitted += int(min(f.number, maxAdmitted)) })
		case kindRoom:
			i.change(func() { i.room += int(min(f.number, maxRoom)) })
		case kindPath, kindLeave:
			if len(f.payload) != pathLen {
				return broken("a path of %d bytes", len(f.payload))
			}
			w := wayOf(f.payload)
			i.change(func() {
				if delete(i.paths, w); f.kind == kindPath && len(i.paths) < maxPaths {
					i.paths[w] = struct{}{}
				}
			})
		case kindDatagram:
			if len(f.payload) < pathLen {
				return broken("a datagram of %d bytes", len(f.payload))
			}
			i.answer(wayOf(f.payload), f.payload[pathLen:])
		default:
			if err := i.receive(f); err != nil {
				return err
			}
		}
	}
}

func (i *inside) change(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
	i.wake.Broadcast()
}

// begin has a pair of sockets take traffic.
func (i *inside) begin() {
	var err error
	if !i.agent.Reached {
		err = tproxy.Confined()
	}
	if err == nil && len(i.agent.pairs) == 0 {
		i.agent.pairs, err = i.await()
	}
	var s *sockets
	if err == nil {
		p := i.agent.pairs[0]
		i.agent.pairs = i.agent.pairs[1:]
		s, err = p.open()
	}
	if err != nil {
		i.say(kindFailed, 0, refusalOf(err).append(nil))
		return
	}
	i.mu.Lock()
	over := i.err != nil || i.stopped
	if !over {
		i.sockets = s
	}
	i.mu.Unlock()
	if over {
		s.close()
		return
	}
	i.say(kindReady, 0, nil)
	i.work.Go(func() { i.acceptAll(s) })
	i.work.Go(func() { i.readAll(s) })
}

// stop has nothing more come. Twice is fine.
func (i *inside) stop() {
	i.mu.Lock()
	s := i.sockets
	i.sockets, i.stopped = nil, true
	i.wake.Broadcast()
	i.mu.Unlock()
	if s != nil {
		s.close()
	}
}

// acceptAll opens connections, as many as the server asks for.
func (i *inside) acceptAll(s *sockets) {
	for id := uint32(1); ; {
		i.mu.Lock()
		for i.err == nil && !i.stopped && (i.admitted == 0 || i.conns >= maxConns) {
			i.wake.Wait()
		}
		over := i.err != nil || i.stopped
		i.mu.Unlock()
		if over {
			return
		}
		c, err := s.listener.AcceptTCP()
		if err != nil {
			i.mu.Lock()
			over := i.err != nil || i.stopped
			i.mu.Unlock()
			if over {
				return
			}
			select { // a lack of descriptors passes
			case <-i.over:
				return
			case <-time.After(acceptPause):
			}
			continue
		}
		st := i.stream(id)
		st.onReset = func() { abort(c) }
		// Nobody has it any more. A program that takes nothing does not keep it for ever.
		st.onLeft = func() {
			_ = c.SetReadDeadline(time.Unix(1, 0))
			_ = c.SetWriteDeadline(time.Now().Add(lastBytes))
		}
		if !i.add(st) {
			abort(c)
			return
		}
		i.mu.Lock()
		i.admitted--
		i.conns++
		i.mu.Unlock()
		i.say(kindOpen, id, way{addrPort(c.RemoteAddr()), addrPort(c.LocalAddr())}.append(nil))
		i.work.Go(func() {
			i.carry(st, c)
			i.change(func() { i.conns-- })
		})
		if id++; id == 0 {
			i.fail(errors.New("the session has had all connections that it can number"))
			return
		}
	}
}

func addrPort(a net.Addr) netip.AddrPort {
	p := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
}

// abort resets a connection. It does not block.
func abort(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// carry is the life of a connection.
func (i *inside) carry(st *stream, c *net.TCPConn) {
	var up sync.WaitGroup
	up.Go(func() { i.send(st, c) })
	_, err := st.writeTo(c)
	i.mu.Lock()
	left := st.left
	i.mu.Unlock()
	switch {
	case err != nil:
		abort(c)
		st.close(true)
	case left:
		_ = c.Close()
	default:
		_ = c.CloseWrite()
	}
	up.Wait()
	_ = c.Close()
	i.mu.Lock()
	st.forgetLocked()
	i.mu.Unlock()
}

// send sends what a program says, as far as the server has room for it.
func (i *inside) send(st *stream, c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	for {
		room, err := st.room()
		if err != nil {
			return
		}
		n := 0
		var piece []byte
		// Room for a piece is made once there is one: most connections say nothing most of the time.
		outer := raw.Read(func(fd uintptr) bool {
			piece = i.piece(room)
			for n, err = unix.Read(int(fd), piece); errors.Is(err, unix.EINTR); {
				n, err = unix.Read(int(fd), piece)
			}
			if errors.Is(err, unix.EAGAIN) {
				i.putPiece(piece)
				return false
			}
			return true
		})
		if outer != nil { // it is closed already, or nobody has it
			return
		}
		if err == nil && n == 0 {
			_ = st.end()
			i.putPiece(piece)
			return
		}
		if err == nil {
			_, err = st.write(piece[:n])
		}
		i.putPiece(piece)
		i.mu.Lock()
		left := st.left
		i.mu.Unlock()
		if err != nil && !left {
			abort(c)
			st.close(true)
		}
		if err != nil {
			return
		}
	}
}

// piece returns room for some bytes, for n at most. What many connections have on their way at once, while the
// server takes nothing, is little each.
func (i *inside) piece(n int) []byte {
	if i.large.Add(1) > largePieces {
		return make([]byte, min(n, smallPiece))
	}
	if b, ok := i.pieces.Get().(*[maxPayload]byte); ok {
		return b[:n]
	}
	return new([maxPayload]byte)[:n]
}

func (i *inside) putPiece(b []byte) {
	i.large.Add(-1)
	if cap(b) == maxPayload {
		i.pieces.Put((*[maxPayload]byte)(b[:maxPayload]))
	}
}
