// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"time"

	"sandpit.dev/agent/wire"
)

// readers are the followers that get all of a process's output: its program waits for the
// slowest of them, and for a while after the last one was lost. Its process's mu guards it.
//
// They read the log, as all followers do, and the log goes on rolling: the program is held up
// long before the log drops a frame that a reader has not got. What was sent may be lost with
// the server that it was sent to, so the log keeps frames behind each reader, too.
type readers struct {
	all    []*reader
	left   time.Time     // when the last of them was lost
	leftAt int64         // and where it was
	lost   *time.Timer   // of closeForsaken, from when it was lost; nil: none was. It ends with the process
	got    chan struct{} // closed when one has got on, came or was lost; nil: nobody waits
}

// reader is one of them.
type reader struct{ off int64 }

const (
	// leastLog is how much a log with readers may hold at least, where the budget has room: so a
	// quarter of it is more than is on its way between here and a client.
	leastLog = 64 << 20
	// maxBehind is how far a reader may be behind, where the log keeps four times that.
	maxBehind = 4 << 20
	// readTurn is the most that a pump reads before it looks again how far readers are behind.
	readTurn = 256 << 10
)

// beginReader has the program wait for a follower, if it waits for any; nil: it does not.
func (p *process) beginReader(off int64, lossless bool) *reader {
	if p.readers == nil || !lossless {
		return nil
	}
	r := &reader{off}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers.all = append(p.readers.all, r)
	p.readers.endWait()
	p.readers.wake()
	return r
}

// endReader ends the wait for a follower.
func (p *process) endReader(r *reader) {
	if r == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	rs := p.readers
	rs.all = slices.DeleteFunc(rs.all, func(one *reader) bool { return one == r })
	rs.left, rs.leftAt = time.Now(), r.off
	rs.wake()
	if len(rs.all) == 0 && p.rec.Result == nil && p.stdinTurn != nil {
		p.awaitUseLocked()
	}
}

// awaitUseLocked has the input of a process whose last reader was lost end after wire.LostPatience,
// unless somebody uses it by then.
func (p *process) awaitUseLocked() {
	taken := p.stdinTaken.Load()
	p.readers.endWait()
	p.readers.lost = time.AfterFunc(wire.LostPatience, func() { p.closeForsaken(taken) })
}

// closeForsaken closes the input of a process that has no reader, so that its program does not wait for a
// client that is gone. The input stays open for another wait where the process has followers, or clients
// have sent more than the bytes taken.
func (p *process) closeForsaken(taken int64) {
	p.mu.Lock()
	over := p.rec.Result != nil || len(p.readers.all) > 0
	used := p.holders > 0 || p.stdinTaken.Load() != taken
	if !over && used {
		p.awaitUseLocked()
	}
	p.mu.Unlock()
	if !over && !used {
		p.closeStdin()
	}
}

// endWait ends the wait of closeForsaken.
func (rs *readers) endWait() {
	if rs.lost != nil {
		rs.lost.Stop()
	}
}

// gotOnLocked notes where a reader is.
func (p *process) gotOnLocked(r *reader, off int64) {
	if r == nil || r.off == off {
		return
	}
	r.off = off
	p.readers.wake()
}

func (rs *readers) wake() {
	if rs.got != nil {
		close(rs.got)
		rs.got = nil
	}
}

// behindLocked is how many bytes of the log the slowest reader is still to get.
func (p *process) behindLocked() int64 {
	rs := p.readers
	if rs == nil {
		return 0
	}
	at := p.log.end()
	for _, r := range rs.all {
		at = min(at, r.off)
	}
	if len(rs.all) == 0 && time.Since(rs.left) < wire.LostPatience {
		at = min(at, rs.leftAt)
	}
	return p.log.end() - at
}

// roomLocked is how many bytes more the readers may be behind; zero or less: the program waits.
// That of a process which has ended does not: they get what it wrote, and no more.
func (p *process) roomLocked() int64 {
	if p.rec.Result != nil || p.srv.ctx.Err() != nil {
		return readTurn
	}
	l := p.log
	return min(maxBehind, l.keep/4, (l.room-endRoom)/4) - p.behindLocked()
}

// mayRead is how many bytes a pump may read now.
func (p *process) mayRead() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(max(0, min(p.roomLocked(), readTurn)))
}

// awaitReaders waits until a pump may read.
func (p *process) awaitReaders(st *stream) {
	if p.readers == nil {
		return
	}
	for {
		p.mu.Lock()
		if st.over.Load() || p.roomLocked() > 0 {
			p.mu.Unlock()
			return
		}
		rs := p.readers
		if rs.got == nil {
			rs.got = make(chan struct{})
		}
		got, lost := rs.got, len(rs.all) == 0
		left := wire.LostPatience - time.Since(rs.left)
		p.mu.Unlock()
		var late <-chan time.Time
		if lost {
			late = time.After(left)
		}
		select {
		case <-got:
		case <-late:
		case <-p.ended:
			return
		case <-p.srv.ctx.Done():
			return
		}
	}
}
