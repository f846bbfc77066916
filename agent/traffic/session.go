// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"encoding/binary"
	"net"
	"sync"
)

// Bounds of a session. Both sides have the same, but for the pools.
const (
	firstWindow = 16 << 10 // bytes that a connection may have on its way from its beginning on
	mostWindow  = 1 << 20
	agentPool   = 2 << 20 // bytes by which the windows of all connections may grow, of what the agent keeps
	serverPool  = 8 << 20 // of what the server keeps
	maxBatch    = 60 << 10
	maxUrgent   = 256 << 10 // bytes of datagrams that wait to be sent
	manyStreams = 32        // from so many on, one that was read empty keeps no memory for what may come
)

// session is one end of a connection between a server and an agent.
type session struct {
	nc net.Conn

	mu      sync.Mutex
	wake    sync.Cond // of the writer, and of who waits for room in urgent
	urgent  []byte    // frames that go before others
	ready   []*stream // that have something to send, each once
	streams map[uint32]*stream
	pool    int
	err     error         // why it is over
	over    chan struct{} // closed then
}

func newSession(nc net.Conn, pool int) *session {
	s := &session{nc: nc, pool: pool, streams: make(map[uint32]*stream), over: make(chan struct{})}
	s.wake.L = &s.mu
	return s
}

// fail ends the session, and all that goes over it. The first error counts.
func (s *session) fail(err error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = err
	close(s.over)
	s.wake.Broadcast()
	all := s.streams
	s.streams = nil
	for _, st := range all {
		st.failLocked(net.ErrClosed)
	}
	s.mu.Unlock()
	_ = s.nc.Close()
	for _, st := range all {
		if st.onReset != nil {
			st.onReset()
		}
	}
}

// why returns why the session is over.
func (s *session) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// say queues a frame that goes before all data.
func (s *session) say(k kind, number uint32, payload []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sayLocked(k, number, payload)
}

func (s *session) sayLocked(k kind, number uint32, payload []byte) {
	if s.err != nil {
		return
	}
	s.urgent = append(appendHead(s.urgent, k, number, len(payload)), payload...)
	s.wake.Broadcast()
}

// datagram queues one. It is false, and the datagram lost, where too many wait and patient is false, or the session is over.
func (s *session) datagram(w way, lost uint32, b []byte, patient bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.err == nil && len(s.urgent) > maxUrgent {
		if !patient {
			return false
		}
		s.wake.Wait()
	}
	if s.err != nil {
		return false
	}
	s.urgent = append(w.append(appendHead(s.urgent, kindDatagram, lost, pathLen+len(b))), b...)
	s.wake.Broadcast()
	return true
}

// write sends what is queued until the session is over. Streams take turns.
func (s *session) write() {
	out := make([]byte, 0, maxBatch+maxPayload)
	for {
		s.mu.Lock()
		for s.err == nil && len(s.urgent) == 0 && len(s.ready) == 0 {
			s.wake.Wait()
		}
		if s.err != nil {
			s.mu.Unlock()
			return
		}
		if len(s.urgent) > 0 {
			out = append(out[:0], s.urgent...)
			if s.urgent = s.urgent[:0]; cap(s.urgent) > maxBatch {
				s.urgent = nil
			}
			s.wake.Broadcast()
		} else {
			out = out[:0]
		}
		for turns := len(s.ready); turns > 0 && len(out) < maxBatch; turns-- {
			st := s.ready[0]
			s.ready = s.ready[1:]
			st.queued = false
			out = st.appendLocked(out)
		}
		if len(s.ready) == 0 {
			s.ready = nil
		}
		s.mu.Unlock()
		if _, err := s.nc.Write(out); err != nil {
			s.fail(err)
			return
		}
		if cap(out) > 4*maxBatch {
			out = make([]byte, 0, maxBatch+maxPayload)
		}
	}
}

// add adds a connection, and reports whether the session still runs.
func (s *session) add(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	s.streams[st.id] = st
	return true
}

// receive handles a frame of a connection. One that is not known any more is passed over.
func (s *session) receive(f frame) error {
	s.mu.Lock()
	st := s.streams[f.number]
	if st == nil {
		s.mu.Unlock()
		return nil
	}
	reset, left := false, false
	var err error
	switch f.kind {
	case kindData:
		err = st.arriveLocked(f.payload)
	case kindEnd:
		st.inEnd = true
		notify(st.readable)
	case kindClose:
		st.inEnd, st.ended, st.left = true, true, true
		st.pending, st.ends = nil, false
		notify(st.readable)
		notify(st.writable)
		left = true
	case kindReset:
		st.failLocked(errReset)
		st.forgetLocked()
		reset = true
	case kindWindow:
		if len(f.payload) != 4 {
			err = broken("a window of %d bytes", len(f.payload))
			break
		}
		n := binary.BigEndian.Uint32(f.payload)
		if n > mostWindow || st.credit > 2*mostWindow {
			err = broken("a window of %d", n)
			break
		}
		st.credit += int(n)
		st.queueLocked()
		notify(st.writable)
	default:
		err = broken("a frame of kind %d", f.kind)
	}
	s.mu.Unlock()
	if reset && st.onReset != nil {
		st.onReset()
	}
	if left && st.onLeft != nil {
		st.onLeft()
	}
	return err
}

// notify wakes one who waits.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
