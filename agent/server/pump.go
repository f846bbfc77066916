// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/wire"
)

// pump carries a stream to the log until its end. While nothing comes, it
// holds no buffer.
func (p *process) pump(st *stream) {
	for behind := true; behind; {
		p.awaitReaders(st)
		behind = false
		_ = st.raw.Read(func(fd uintptr) bool {
			for !st.over.Load() {
				turn := pumpTurn
				if p.readers != nil {
					if turn = p.mayRead(); turn == 0 {
						behind = true
						return true
					}
				}
				end, dry := p.drain(st, int(fd), turn)
				p.pause(st)
				if end || dry {
					return end
				}
			}
			return false // its deadline is over, or about to be
		})
	}
	if st.over.Load() {
		p.drainBuffered(st)
	}
	st.readMu.Lock()
	st.eof = true // also where the file was closed under us
	p.logHeld(st)
	st.readMu.Unlock()
	if st.f != p.terminal {
		_ = st.f.Close()
	}
}

// pumpTurn is after how many bytes a pump that never runs dry lets the other
// reader of its stream have a turn.
const pumpTurn = 1 << 20

// A program whose output is neither kept nor followed any more is read at 128 MB/s: without a
// bound it and its pump would keep two processors busy.
const (
	discardTurn  = 512 << 10
	discardPause = 4 * time.Millisecond
)

// pause delays the pump, if much was discarded.
func (p *process) pause(st *stream) {
	p.mu.Lock()
	much := st.discarded >= discardTurn && p.readers == nil
	if much {
		st.discarded = 0
	}
	p.mu.Unlock()
	if much {
		time.Sleep(discardPause)
	}
}

// drain reads what is there, about budget bytes at most, and tells whether the
// stream is at its end, or has no more for now.
func (p *process) drain(st *stream, fd, budget int) (end, dry bool) {
	st.readMu.Lock()
	defer st.readMu.Unlock()
	if st.eof {
		return true, false
	}
	buf := p.srv.memory.Get()
	defer p.srv.memory.Put(buf)
	for budget > 0 {
		from := wire.LogHeaderLen
		if st.redaction != nil {
			from += copy(buf[from:], st.redaction.held)
		}
		n, err := unix.Read(fd, buf[from:min(len(buf), from+budget)])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return false, true
		case err != nil || n <= 0: // a terminal ends with EIO
			st.eof = true
			p.logHeld(st)
			return true, false
		}
		if st.redaction != nil {
			p.redactOutput(st, buf[:from+n])
		} else {
			p.output(st, buf[:from+n])
		}
		budget -= n
		if from+n == len(buf) {
			st.widen(fd)
		}
	}
	return false, false
}

// A program that fills its pipe again and again gets one with more room, so that it
// does not wait for us at every turn.
const (
	patientReads = 16
	widePipe     = 512 << 10
)

func (st *stream) widen(fd int) {
	if st.full++; st.full == patientReads {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, widePipe) // a terminal has none, and a user only so much
	}
}
