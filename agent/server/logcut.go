// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/descriptor"
	"sandpit.dev/agent/wire"
)

// cutSuffix is of the file that becomes a log's shorter one.
const cutSuffix = ".cut"

// cutLocked has the largest logs cut, if there is too little left for what begins. The
// caller holds mu.
func (b *budget) cutLocked() {
	if b.cutting || b.even || !b.tight() {
		return
	}
	b.cutting = true
	b.srv.work.Go(b.cut)
}

func (b *budget) tight() bool { return b.free() < b.limit/8*3 }

// cut cuts the largest log in memory in half, and the next one, until enough is free or
// none is large.
func (b *budget) cut() {
	for {
		p := b.srv.largestLog()
		done := p != nil && p.cutLog()
		b.mu.Lock()
		b.even = !done
		if !done || !b.tight() {
			b.cutting = false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
	}
}

// largestLog returns the process in memory whose log takes most; nil if none takes much.
func (s *Server) largestLog() (largest *process) {
	s.mu.Lock()
	all := make([]*process, 0, len(s.procs))
	for _, p := range s.procs {
		if p != nil {
			all = append(all, p)
		}
	}
	s.mu.Unlock()
	var most int64 = 2 * minLog
	for _, p := range all {
		p.mu.Lock()
		if room := p.log.room; room > most && !p.forgotten && p.log.fd >= 0 {
			most, largest = room, p
		}
		p.mu.Unlock()
	}
	return largest
}

// cutLog takes from the log what room it does not use, or its older half, and reports
// whether that made room.
func (p *process) cutLog() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.log
	if p.forgotten || p.stored != nil || l.fd < 0 {
		return false
	}
	if need := l.held() + endRoom; need > l.room/4*3 { // else it has only asked ahead
		keep := l.budget.lend(l.room / 2)
		defer l.budget.giveBack(keep)
		if p.behindLocked() > min(keep, l.held()/2) { // a reader would lose output
			return false
		}
		if !l.rewrite(min(keep, l.held()/2), time.Now()) {
			return false
		}
		for _, st := range p.streams {
			if st != nil {
				st.truncate(wire.CutRolled)
			}
		}
	}
	room := l.room
	l.room = max(minLog, l.held()+endRoom)
	l.budget.giveBack(room - l.room)
	return l.room < room
}

// lend makes room for as much of bytes as half of what is free holds: a log that is cut is there
// twice for a moment, in which processes begin. Give it back.
func (b *budget) lend(bytes int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	bytes = max(0, min(bytes, b.free()/2))
	b.live += bytes
	b.evict()
	return bytes
}

// rewrite puts a file with a hole in the log's place, in which the last keep bytes stand
// where they stood. A hole in the old file would not do: a file system may keep all of an
// extent as long as a part of it is in use. Who reads by the descriptor goes on.
func (l *logFile) rewrite(keep int64, at time.Time) bool {
	floor, err := l.frameFrom(l.size - keep)
	if err != nil || floor <= l.floor {
		return false
	}
	name := l.name + cutSuffix
	fd, err := unix.Openat(l.dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	old, cut := descriptor.File(l.fd), descriptor.File(fd)
	_, err = io.Copy(io.NewOffsetWriter(cut, 0), io.NewSectionReader(old, 0, l.first))
	if err == nil {
		_, err = cut.WriteAt(floorFrame(floor, at), l.floorAt)
	}
	if err == nil { // in few calls: this may be much, and all followers wait
		_, err = io.CopyBuffer(io.NewOffsetWriter(cut, floor), io.NewSectionReader(old, floor, l.size-floor), make([]byte, 256<<10))
	}
	if err == nil && floor == l.size {
		err = unix.Ftruncate(fd, l.size)
	}
	if err == nil {
		err = unix.Renameat(l.dir, name, l.dir, l.name)
	}
	if err != nil {
		_ = unix.Unlinkat(l.dir, name, 0)
		return false
	}
	if err := unix.Dup3(fd, l.fd, unix.O_CLOEXEC); err != nil { // of two open descriptors: it cannot fail
		return false
	}
	l.floor, l.rolled = floor, true
	return true
}

// frameFrom returns where the first frame on disk begins that is not before off.
func (l *logFile) frameFrom(off int64) (int64, error) {
	at := l.size
	err := walk(descriptor.File(l.fd), l.floor, l.size, func(_ wire.Type, begin int64, _ int) bool {
		at = begin
		return begin < off
	})
	if at < off { // the last one
		at = l.size
	}
	return at, err
}
