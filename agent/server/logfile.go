// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/wire"
)

const (
	// maxTail is how much of a log that the disk refused is kept in memory.
	maxTail = 64 << 10
	// maxDeferred is how much of a log is kept in memory before its file is made.
	maxDeferred = 16 << 10
	// deferral is how long a command runs before the file of its log is made. A
	// shorter one's is written in one piece, when its result is on its way: a
	// file system under load can take longer to make a file than the command runs.
	// What is in memory meanwhile is lost only with the agent, that is, with the sandbox.
	deferral = 20 * time.Millisecond
)

// logFile is the log of one process that is being written. Its process's mu
// guards it. Positions count over what is on disk and what is in the tail.
type logFile struct {
	dir   int // the log directory
	name  string
	fd    int    // below zero: the disk refused the file, or it is closed
	size  int64  // bytes on disk
	first int64  // where the first frame after LogStart begins
	exit  int64  // where LogExit begins; 0: not there yet
	limit int64  // no output beyond this position
	seq   int64  // of the last output frame
	tail  []byte // what follows, while the file is not made or the disk is full
	marks []mark // of some output frames, in their order; at most maxMarks
	later bool   // the file is still to be made
	lost  int64  // bytes of output that neither took
	err   error  // why the disk did not
	why   string // why output was not kept, one of wire's Cut words

	budget *budget
	room   int64 // what the log may take, by the budget

	// Of a rolling log.
	keep    int64 // how much of it is kept at least; 0: it does not roll
	slack   int64 // how much more it may hold: what is let go of is let go of in pieces of this size
	renewed bool  // it is let go of by another file in the place of this one
	floor   int64 // where the oldest frame begins that is kept
	floorAt int64 // where that is written down
	rolled  bool  // something was let go of
}

func logName(id string) string { return wire.LogName(id) }

// newLog makes the log of a new process. One that exists is EEXIST.
func (s *Server) newLog(id string, output int64) (*logFile, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(s.logDir, logName(id), &st, unix.AT_SYMLINK_NOFOLLOW); !errors.Is(err, unix.ENOENT) {
		if err == nil {
			err = unix.EEXIST
		}
		return nil, &os.PathError{Op: "create", Path: logName(id), Err: err}
	}
	if err := s.budget.begin(); err != nil {
		return nil, err
	}
	return &logFile{
		dir: s.logDir, name: logName(id), fd: -1, later: true, limit: 2*output + 4<<20,
		budget: &s.budget, room: minLog,
	}, nil
}

// makeFile makes the file, if it is still to be made, and brings to disk what is in memory.
func (l *logFile) makeFile() {
	if !l.later {
		return
	}
	l.later = false
	if l.err = l.create(); l.err == nil { // a full disk must not stop the command that would make room
		l.flush()
	}
}

func (l *logFile) create() (err error) {
	l.fd, err = unix.Openat(l.dir, l.name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		l.fd = -1
	}
	return err
}

func (l *logFile) end() int64 { return l.size + int64(len(l.tail)) }

// output adds a frame of output, b, which has its header's room first, or of what fits the
// beginning, and returns how many bytes of output it kept. Where that is not all, why says why.
func (l *logFile) output(b []byte, t wire.Type, at time.Time) int64 {
	if l.end()+int64(len(b)) > l.limit {
		if l.why == "" {
			l.why = wire.CutLimit
		}
		return 0
	}
	if n := l.fit(int64(len(b)), at); n <= wire.LogHeaderLen {
		return 0
	} else if n < int64(len(b)) {
		b = b[:n]
	}
	wire.PutLogHeader(b, t, l.seq+1, at)
	off, n := l.end(), int64(len(b)-wire.LogHeaderLen)
	if !l.add(b, maxTail) {
		l.lost += n
		l.why = wire.CutDisk
		return 0
	}
	l.seq++
	l.mark(off)
	l.roll(at)
	return n
}

// fit makes room for n bytes more, and returns how many there is room for. Where the
// budget has no more for it, the log lets go of its older half.
func (l *logFile) fit(n int64, at time.Time) int64 {
	left := l.room - endRoom - l.held()
	if n <= left {
		return n
	}
	var ok bool
	if l.room, ok = l.budget.grow(l.room, l.held()+n+endRoom); ok {
		return n
	}
	l.why = wire.CutLogs
	l.makeFile()
	l.rollTo((l.room-endRoom)/2, at)
	return min(n, l.room-endRoom-l.held())
}

// add appends whole frames, in one write.
func (l *logFile) add(b []byte, tail int) bool {
	if l.later {
		if len(l.tail)+len(b) <= maxDeferred {
			l.tail = append(l.tail, b...)
			return true
		}
		l.makeFile()
	}
	if len(l.tail) == 0 && l.write(b) {
		return true
	}
	if len(l.tail)+len(b) > tail {
		return false
	}
	l.tail = append(l.tail, b...)
	return true
}

func (l *logFile) write(b []byte) bool {
	if l.fd < 0 {
		return false
	}
	n, err := unix.Pwrite(l.fd, b, l.size)
	for err == unix.EINTR {
		n, err = unix.Pwrite(l.fd, b, l.size)
	}
	if err == nil && n == len(b) {
		l.size += int64(n)
		return true
	}
	if err == nil {
		err = unix.ENOSPC
	}
	l.err = err
	_ = unix.Ftruncate(l.fd, l.size)
	return false
}

// flush tries once more to bring the tail to disk.
func (l *logFile) flush() bool {
	if len(l.tail) == 0 {
		return true
	}
	if !l.write(l.tail) {
		return false
	}
	l.tail = nil
	return true
}

// trouble says in words what the disk did to the log; "" where it did nothing.
func (l *logFile) trouble() string {
	switch {
	case l.err == nil:
		return ""
	case l.lost > 0:
		return fmt.Sprintf("the log of its output could not be written (%v): %d bytes of it are lost", l.err, l.lost)
	}
	return fmt.Sprintf("the log of its output could not be written (%v): it is kept in memory", l.err)
}

// tailAt is what follows position off in memory; nil where off is on disk, or at the end.
func (l *logFile) tailAt(off int64) []byte {
	if off < l.size || off >= l.end() {
		return nil
	}
	return l.tail[off-l.size:]
}

// seal ends the log.
func (l *logFile) seal(at time.Time) bool {
	l.later = false
	if l.fd < 0 && l.create() != nil {
		return false
	}
	rest := wire.AppendLog(l.tail, wire.LogSeal, l.seq, at, sealContent(l.exit))
	if !l.write(rest) {
		return false
	}
	l.tail = nil
	return true
}

func (l *logFile) close() {
	if l.fd >= 0 {
		_ = unix.Close(l.fd)
		l.fd = -1
	}
}
