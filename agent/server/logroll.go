// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/binary"
	"io"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/descriptor"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// A rolling log keeps the last of what a process wrote, where another one keeps
// the first: who joins a terminal, or a process that is never to end, wants to see
// what is now. Any log lets go of its oldest frames where the budget has no room. Frames stay where they are in the file, and what is in front of the
// oldest one that is kept is given back to the file system as a hole. A LogFloor
// frame behind LogStart says where that one begins; it is written before the hole is
// made, so that a reader never meets one.

// rollSlack is the slack of a log that rolls by holes.
const rollSlack = 1 << 20

// rolling makes the log, which is new, one that keeps its last bytes: output at least.
func (l *logFile) rolling(output int64) {
	l.keep, l.slack, l.limit = 2*output, rollSlack, math.MaxInt64 // small frames are mostly header
}

// renewing makes the log, which is new, one that holds most bytes at most, and at least the last
// quarter of that. It is for much output: before btrfs makes a hole it writes to the disk what is
// to be let go of, and it does not where the whole file goes.
func (l *logFile) renewing(most int64) {
	l.keep, l.slack, l.limit, l.renewed = most/4, most-most/4, math.MaxInt64, true
}

// markFloor writes the first LogFloor, right behind LogStart.
func (l *logFile) markFloor(at time.Time) bool {
	l.floorAt = l.end()
	return l.add(floorFrame(0, at), 2*maxTail)
}

func floorFrame(floor int64, at time.Time) []byte {
	return wire.AppendLog(nil, wire.LogFloor, 0, at, binary.BigEndian.AppendUint64(nil, uint64(floor)))
}

// roll lets go of the oldest frames, if there are too many. A file system that
// makes no holes ends the rolling: from then on nothing more is kept.
func (l *logFile) roll(at time.Time) {
	if l.keep == 0 || l.size-l.floor <= l.keep+l.slack || l.renewed && l.renew(at) {
		return
	}
	l.rollTo(l.keep, at)
}

// renew drops the oldest frames by writing the others to a new file, and reports whether it did.
func (l *logFile) renew(at time.Time) bool {
	room := l.budget.lend(l.keep)
	defer l.budget.giveBack(room)
	return room == l.keep && l.rewrite(l.keep, at)
}

// rollTo lets go of the oldest frames, but for the last keep bytes on disk.
func (l *logFile) rollTo(keep int64, at time.Time) {
	if l.fd < 0 || l.size-l.floor <= keep {
		return
	}
	floor, err := l.frameFrom(l.size - keep)
	if err == nil && floor == l.floor {
		return
	}
	if err == nil {
		_, err = unix.Pwrite(l.fd, floorFrame(floor, at), l.floorAt)
	}
	if err == nil {
		err = unix.Fallocate(l.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, l.floor, floor-l.floor)
	}
	if err != nil {
		l.keep, l.limit, l.err, l.why = 0, l.end(), err, wire.CutDisk
		return
	}
	l.floor, l.rolled = floor, true
}

// held is how much of the disk the log takes, or will once all of it is there.
func (l *logFile) held() int64 { return l.end() - (l.floor - l.first) }

// walk tells of the frames that begin from off on and before end, which have to be
// whole, until fn has enough.
func walk(file io.ReaderAt, off, end int64, fn func(t wire.Type, off int64, n int) bool) error {
	buf := make([]byte, wire.MaxData)
	var have []byte // of the file, from off on
	for off < end {
		if len(have) < wire.HeaderLen {
			n, err := file.ReadAt(buf[:min(int64(len(buf)), end-off)], off)
			if have = buf[:n]; n < wire.HeaderLen {
				return err
			}
		}
		t, n, err := frameHeader(have)
		if err != nil {
			return err
		}
		if !fn(t, off, n) {
			return nil
		}
		whole := wire.HeaderLen + n
		off += int64(whole)
		have = have[min(whole, len(have)):]
	}
	return nil
}

// seekRecent returns where the last recent bytes of output begin, with the frame that
// the first of them is in left out, in a log whose frames from off to end are whole.
func seekRecent(file io.ReaderAt, off, end, recent int64) (int64, error) {
	output := func(t wire.Type, n int) int64 {
		if t != wire.LogStdout && t != wire.LogStderr {
			return 0
		}
		return int64(n + wire.HeaderLen - wire.LogHeaderLen)
	}
	var left int64
	err := walk(file, off, end, func(t wire.Type, _ int64, n int) bool { left += output(t, n); return true })
	if err != nil {
		return 0, err
	}
	begin := end
	err = walk(file, off, end, func(t wire.Type, at int64, n int) bool {
		if left <= recent {
			begin = at
			return false
		}
		left -= output(t, n)
		return true
	})
	return begin, err
}

// ReadAt reads the log as it will be once all of it is on disk.
func (l *logFile) ReadAt(b []byte, off int64) (n int, err error) {
	if off < l.size {
		if n, err = descriptor.File(l.fd).ReadAt(b[:min(int64(len(b)), l.size-off)], off); err != nil {
			return n, err
		}
	}
	n += copy(b[n:], l.tailAt(off+int64(n)))
	if n < len(b) {
		err = io.EOF
	}
	return n, err
}

// copyFrames sends whole frames of the log from off on, or from where its oldest ones
// are by now, and gives where the next begins. It reads without the lock: but for what is let
// go of, what is there never changes.
func (p *process) copyFrames(c *call.Conn, off int64) (int64, error) {
	p.mu.Lock()
	fd, size := p.log.fd, p.log.size
	off = max(off, p.log.floor)
	p.mu.Unlock()
	buf := p.srv.memory.Get()
	defer p.srv.memory.Put(buf)
	n, err := descriptor.File(fd).ReadAt(buf[:min(int64(len(buf)), size-off)], off)
	p.mu.Lock()
	floor := p.log.floor
	p.mu.Unlock()
	if floor > off { // perhaps under our eyes
		return floor, nil
	}
	whole := 0
	for whole+wire.HeaderLen <= n {
		_, length, bad := frameHeader(buf[whole:n])
		if bad != nil {
			return off, fault.Wrap(fault.Internal, bad, "the log of a process could not be read")
		}
		if whole+wire.HeaderLen+length > n {
			break
		}
		whole += wire.HeaderLen + length
	}
	if whole == 0 {
		return off, fault.Wrap(fault.Internal, err, "the log of a process could not be read")
	}
	_, err = c.Write(buf[:whole])
	return off + int64(whole), err
}
