// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"syscall"
)

// errReset is of a connection that its other end broke off.
var errReset = &net.OpError{Op: "read", Net: "traffic", Err: syscall.ECONNRESET}

// stream is one end of a connection in a session. Reading and writing are for one goroutine each.
type stream struct {
	s       *session
	id      uint32
	onReset func() // called when its other end or the session broke it off; it does not block
	onLeft  func() // called when its other end neither sends nor reads any more; it does not block

	readable, writable chan struct{} // of room for one
	readUntil          deadline
	writeUntil         deadline

	// Guarded by s.mu.
	in     []byte // received, and not yet read
	inEnd  bool   // nothing more comes
	left   bool   // the other end reads nothing more, either
	window int    // bytes that may still come
	target int    // what window grows to when all was read
	taken  int    // bytes that were read and not yet granted again
	grant  int    // to be sent

	credit  int    // bytes that may be sent
	pending []byte // of a Write that waits
	ends    bool   // to be said
	leaves  bool
	resets  bool
	ended   bool  // of what this end sends
	gone    bool  // s has no entry for it
	err     error // for ever
	queued  bool
}

func (s *session) stream(id uint32) *stream {
	return &stream{
		s: s, id: id, readable: make(chan struct{}, 1), writable: make(chan struct{}, 1),
		readUntil: newDeadline(), writeUntil: newDeadline(), window: firstWindow, target: firstWindow, credit: firstWindow,
	}
}

func (st *stream) queueLocked() {
	if !st.queued && st.hasLocked() {
		st.queued = true
		st.s.ready = append(st.s.ready, st)
		st.s.wake.Broadcast()
	}
}

// hasLocked reports whether there is something to send.
func (st *stream) hasLocked() bool {
	return st.grant > 0 || st.ends || st.leaves || st.resets || len(st.pending) > 0 && st.credit > 0
}

// appendLocked appends what is to be sent now: one piece of data at most.
func (st *stream) appendLocked(out []byte) []byte {
	if st.resets {
		st.resets = false
		return appendHead(out, kindReset, st.id, 0)
	}
	if st.grant > 0 {
		out = binary.BigEndian.AppendUint32(appendHead(out, kindWindow, st.id, 4), uint32(st.grant)) //nolint:gosec // at most mostWindow
		st.grant = 0
	}
	if n := min(len(st.pending), st.credit, maxPayload); n > 0 {
		out = append(appendHead(out, kindData, st.id, n), st.pending[:n]...)
		st.pending = st.pending[n:]
		st.credit -= n
		if len(st.pending) == 0 {
			notify(st.writable)
		}
	}
	if len(st.pending) == 0 && st.ends {
		st.ends = false
		out = appendHead(out, kindEnd, st.id, 0)
	}
	if len(st.pending) == 0 && st.leaves {
		st.leaves = false
		out = appendHead(out, kindClose, st.id, 0)
	}
	st.queueLocked()
	return out
}

// arriveLocked takes what was received.
func (st *stream) arriveLocked(b []byte) error {
	if len(b) > st.window || st.inEnd {
		return broken("more of a connection than may be on its way")
	}
	st.window -= len(b)
	st.in = append(st.in, b...)
	notify(st.readable)
	return nil
}

// tookLocked has what was read be granted again, and the window grow if there is room.
func (st *stream) tookLocked(n int) {
	if st.taken += n; st.taken < st.target/2 || st.inEnd || st.gone {
		return
	}
	more := st.taken
	if st.target < mostWindow && st.s.pool/4 >= st.target {
		st.s.pool -= st.target
		more += st.target
		st.target *= 2
	}
	st.taken = 0
	st.window += more
	st.grant += more
	st.queueLocked()
}

// failLocked ends it with an error, for who reads and who writes.
func (st *stream) failLocked(err error) {
	if st.err == nil {
		st.err = err
	}
	st.pending, st.grant, st.ends, st.leaves = nil, 0, false, false
	notify(st.readable)
	notify(st.writable)
}

// forgetLocked takes it off the session.
func (st *stream) forgetLocked() {
	if st.gone {
		return
	}
	st.gone = true
	delete(st.s.streams, st.id)
	st.s.pool += st.target - firstWindow
}

// await waits until there is something to read; nil: there is, and st.s.mu is held.
func (st *stream) await() error {
	for {
		st.s.mu.Lock()
		if len(st.in) > 0 && st.err != net.ErrClosed {
			return nil
		}
		err := st.err
		if err == nil && st.inEnd {
			err = io.EOF
		}
		st.s.mu.Unlock()
		if err != nil {
			notify(st.readable) // for whoever reads next
			return err
		}
		select {
		case <-st.readable:
		case <-st.readUntil.wait():
			return &net.OpError{Op: "read", Net: "traffic", Err: os.ErrDeadlineExceeded}
		}
	}
}

func (st *stream) read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if st.readUntil.past() {
		return 0, &net.OpError{Op: "read", Net: "traffic", Err: os.ErrDeadlineExceeded}
	}
	if err := st.await(); err != nil {
		return 0, err
	}
	defer st.s.mu.Unlock()
	n := copy(b, st.in)
	if n == len(st.in) {
		if st.in = st.in[:0]; len(st.s.streams) > manyStreams || cap(st.in) > 2*firstWindow {
			st.in = nil
		}
	} else {
		st.in = st.in[n:]
	}
	st.tookLocked(n)
	return n, nil
}

// writeTo writes all that comes to w.
func (st *stream) writeTo(w io.Writer) (all int64, err error) {
	var spare []byte
	for {
		switch err := st.await(); err {
		case nil:
		case io.EOF:
			return all, nil
		default:
			return all, err
		}
		b := st.in
		st.in = spare
		if len(st.s.streams) > manyStreams {
			st.in = nil
		}
		st.s.mu.Unlock()
		n, err := w.Write(b)
		all += int64(n)
		if err != nil {
			return all, err
		}
		spare = b[:0]
		st.s.mu.Lock()
		st.tookLocked(n)
		st.s.mu.Unlock()
	}
}

// write sends b, and returns once the other end may take all of it.
func (st *stream) write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if st.writeUntil.past() {
		return 0, &net.OpError{Op: "write", Net: "traffic", Err: os.ErrDeadlineExceeded}
	}
	s := st.s
	s.mu.Lock()
	if st.err != nil || st.ended {
		err := st.err
		s.mu.Unlock()
		if err == nil {
			err = net.ErrClosed
		}
		return 0, err
	}
	st.pending = b
	st.queueLocked()
	s.mu.Unlock()
	for {
		late := false
		select {
		case <-st.writable:
		case <-st.writeUntil.wait():
			late = true
		}
		s.mu.Lock()
		left := len(st.pending)
		switch {
		case st.err != nil:
			err := st.err
			st.pending = nil
			s.mu.Unlock()
			notify(st.writable)
			return 0, err
		case left == 0:
			s.mu.Unlock()
			return len(b), nil
		case late:
			st.pending = nil
			s.mu.Unlock()
			return len(b) - left, &net.OpError{Op: "write", Net: "traffic", Err: os.ErrDeadlineExceeded}
		}
		s.mu.Unlock()
	}
}

// room waits until something may be sent, and returns how much.
func (st *stream) room() (int, error) {
	for {
		st.s.mu.Lock()
		n, err, ended := st.credit, st.err, st.ended
		st.s.mu.Unlock()
		switch {
		case err != nil:
			return 0, err
		case ended:
			return 0, net.ErrClosed
		case n > 0:
			return min(n, maxPayload), nil
		}
		<-st.writable
	}
}

// end says that nothing more is sent.
func (st *stream) end() error {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.err != nil || st.ended {
		return st.err
	}
	st.ended, st.ends = true, true
	st.queueLocked()
	return nil
}

// close ends both directions; reset: at once, and what was sent may be lost. Afterwards all is net.ErrClosed.
func (st *stream) close(reset bool) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.err == net.ErrClosed {
		return
	}
	over := st.err != nil // the other end knows
	st.failLocked(net.ErrClosed)
	st.err, st.in = net.ErrClosed, nil
	st.forgetLocked()
	if over || st.s.err != nil {
		return
	}
	if st.resets = reset; !reset {
		st.leaves = true
	}
	st.queueLocked()
}
