// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

const (
	// minLog is what the log of a process may take at least, so that its start, its end
	// and some of its output are on record. Without so much left nothing is started.
	minLog = 16 << 10
	// endRoom is the part of it that output leaves to the frames that end the log.
	endRoom = 4 << 10
	// growStep is the most that a log asks for ahead of what it writes.
	growStep = 256 << 10
	// unloaded is what processes may take before what earlier agents left is counted.
	unloaded = 16 * minLog
)

// budget bounds what all logs of the sandbox take of the disk together: those of processes
// that are in memory, stdin that is stored, and the logs of finished processes. These go first,
// the oldest before the others, unless somebody reads them. A quarter is left for processes that
// begin; and where three eighths are not free, the largest log in memory is cut in half, so
// that what begins next has room for its output, however much the others write.
//
// Its mutex comes after a process's and before the server's.
type budget struct {
	srv *Server

	mu      sync.Mutex
	limit   int64
	live    int64 // what the logs of processes in memory, and stored stdin, may take
	loaded  bool
	logs    []*finished // oldest first
	bytes   int64       // of them together
	pinned  int64       // of those, what somebody reads
	cutting bool        // a goroutine is at it
	even    bool        // no log is worth being cut
}

// finished is the log of a process that is not in memory any more.
type finished struct {
	id      string
	size    int64
	readers int // who has the file open keeps the disk from getting it back
}

// begin makes room for the log of a new process: minLog bytes.
func (b *budget) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live+minLog > unloaded { // the first command must not wait for it
		b.load("")
	}
	if b.free() < minLog {
		return logsFull()
	}
	b.live += minLog
	b.evict()
	return nil
}

// free is what nobody has, once finished logs have given way. The caller holds mu.
func (b *budget) free() int64 { return b.limit - b.live - b.pinned }

// grow makes room for need bytes where there was room for have, and perhaps some more.
// It reports false, and changes nothing, where there is not so much.
func (b *budget) grow(have, need int64) (room int64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.load("")
	defer b.cutLocked()
	most := have + b.free() - b.limit/4
	if need > most {
		return have, false
	}
	room = min(need+min(have, growStep), most)
	b.live += room - have
	b.even = false
	b.evict()
	return room, true
}

// giveBack ends what grow, or begin, made room for.
func (b *budget) giveBack(room int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live -= room
	b.even = false
}

// finish turns the room of a log that is sealed into what it takes. The caller is a reader.
func (b *budget) finish(id string, room, size int64) *finished {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.load(id)
	f := &finished{id: id, size: size, readers: 1}
	b.live -= room
	b.bytes += size
	b.pinned += size
	b.logs = append(b.logs, f)
	b.evict()
	return f
}

// read keeps a finished log until done; nil: there is none by this id.
func (b *budget) read(id string) *finished {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.load("")
	for _, f := range b.logs {
		if f.id == id {
			if f.readers++; f.readers == 1 {
				b.pinned += f.size
			}
			return f
		}
	}
	return nil
}

// done ends what read, or finish, began.
func (b *budget) done(f *finished) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.readers--; f.readers == 0 {
		b.pinned -= f.size
		b.evict()
	}
}

// setLimit changes how much all logs may take. What runs keeps what it has.
func (b *budget) setLimit(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit, b.even = bytes, false
	b.load("")
	b.evict()
	b.cutLocked()
}

// evict removes finished logs while there are too many, or too much. The caller holds mu.
func (b *budget) evict() {
	n := len(b.logs)
	over := func() bool { return n > b.srv.o.MaxFinished || b.bytes > 0 && b.live+b.bytes > b.limit }
	if !over() {
		return
	}
	b.logs = slices.DeleteFunc(b.logs, func(f *finished) bool {
		if f.readers > 0 || !over() {
			return false
		}
		_ = unix.Unlinkat(b.srv.logDir, logName(f.id), 0)
		b.bytes -= f.size
		n--
		return true
	})
}

// load counts the logs on disk that no process in memory owns, but for one. It is done
// once, and not when the agent starts. The caller holds mu.
func (b *budget) load(but string) {
	if b.loaded {
		return
	}
	b.loaded = true
	type entry struct {
		*finished
		mod int64
	}
	var all []entry
	s := b.srv
	ids := s.logIDs(func(name string) {
		if strings.HasSuffix(name, cutSuffix) { // of an agent that ended in the middle
			_ = unix.Unlinkat(s.logDir, name, 0)
		}
	})
	for _, id := range ids {
		s.mu.Lock()
		_, live := s.procs[id]
		s.mu.Unlock()
		var st unix.Stat_t
		if live || id == but || unix.Fstatat(s.logDir, logName(id), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		all = append(all, entry{&finished{id: id, size: min(blocks(st.Size), st.Blocks*512)}, st.Mtim.Nano()}) // of a rolling log a part is a hole
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.mod, b.mod) })
	for _, e := range all {
		b.logs = append(b.logs, e.finished)
		b.bytes += e.size
	}
}

// blocks is what n bytes take in a file.
func blocks(n int64) int64 {
	const block = 4096
	return (n + block - 1) &^ (block - 1)
}

// maxBudget is the most that a call may set.
const maxBudget = 1 << 40

// limitLogs answers a call that changes the budget.
func (s *Server) limitLogs(req *wire.Request) error {
	if req.Size < minLog || req.Size > maxBudget {
		return fault.InvalidField("size", "%d is outside %d to %d bytes", req.Size, minLog, maxBudget)
	}
	s.budget.setLimit(req.Size)
	return nil
}
