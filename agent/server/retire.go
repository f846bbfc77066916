// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"golang.org/x/sys/unix"
)

// maxUnsealed bounds the finished processes whose logs the disk refuses.
const maxUnsealed = 16

// putAway seals the log and, where that worked, drops the process. Otherwise the
// process stays in memory, and every later end of a process tries again.
func (p *process) putAway() {
	s := p.srv
	s.mu.Lock()
	waiting := s.unsealed
	s.unsealed = nil
	s.mu.Unlock()
	for _, q := range append(waiting, p) {
		if q.seal() {
			continue
		}
		s.mu.Lock()
		s.unsealed = append(s.unsealed, q)
		var lost *process
		if len(s.unsealed) > maxUnsealed {
			lost, s.unsealed = s.unsealed[0], s.unsealed[1:]
		}
		s.mu.Unlock()
		if lost != nil {
			s.o.Logger.Error("the log of a process is lost, the disk refuses it", "id", lost.rec.ID)
			_ = unix.Unlinkat(s.logDir, logName(lost.rec.ID), 0)
			s.forget(lost)
		}
	}
}

// giveUpUnsealed closes the logs that the disk refused to the last. What the disk has of
// them stays, and the next agent opens it.
func (s *Server) giveUpUnsealed() {
	s.mu.Lock()
	unsealed := s.unsealed
	s.unsealed = nil
	s.mu.Unlock()
	for _, p := range unsealed {
		if !p.seal() {
			s.forget(p)
		}
	}
}

func (p *process) seal() bool {
	p.mu.Lock()
	if p.log.exit == 0 && p.log.end() > 0 { // LogExit found no room
		p.mu.Unlock()
		return false
	}
	ok := p.log.seal(time.Now())
	if ok {
		p.stored = p.srv.budget.finish(p.rec.ID, p.log.room, blocks(p.log.held()))
	}
	p.mu.Unlock()
	if ok {
		p.srv.forget(p)
	}
	return ok
}

// forget takes a process out of memory. Followers may still read its log.
func (s *Server) forget(p *process) {
	s.mu.Lock()
	if s.procs[p.rec.ID] == p {
		delete(s.procs, p.rec.ID)
	}
	s.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgotten = true
	if p.holders == 0 {
		p.closeLogLocked()
	}
}

// closeLogLocked closes the log's file.
func (p *process) closeLogLocked() {
	p.log.close()
	if p.stored != nil {
		p.srv.budget.done(p.stored)
	} else { // the disk never took its end
		p.srv.budget.giveBack(p.log.room)
	}
}

// hold keeps the log's file open for a follower. It fails once the process is
// forgotten; then its log is to be opened from disk.
func (p *process) hold() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.forgotten {
		return false
	}
	p.holders++
	return true
}

func (p *process) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holders--; p.holders == 0 && p.forgotten {
		p.closeLogLocked()
	}
}
