// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Go's runtime makes a thread for each system call that takes long while others go on,
// and keeps it for ever: a busy moment, or a slow disk, would leave each idle process
// 1 with more of them. So those that wait for nothing are ended.

// keptThreads is how many are left: the first one, which does nothing (see BecomeInit), the runtime's
// two, the one that waits for work, the user's view, and either the root's or one for the next call
// that takes long. A reaper that waits has one more.
const keptThreads = 6

const (
	threadsQuiet = time.Second // nothing must have been done for so long before
	trimTries    = 3           // at a time, see idleTask
	trimPause    = 20 * time.Millisecond
)

// threaded is told when something was done for which there may be a new thread. Where
// the process is not 1, the threads are also somebody else's, and stay.
func (s *Server) threaded() {
	if s.o.Init {
		s.spare.used()
	}
}

// trimThreads ends the threads that are more than are kept, and reports whether none is left of
// them. On a busy machine new ones may have come by the time that the old ones are gone.
func (s *Server) trimThreads() bool {
	for range trimTries {
		n := s.surplusThreads()
		if n <= 0 {
			return true
		}
		s.work.Go(func() { s.endThreads(n) })
		select {
		case <-s.ctx.Done():
			return true
		case <-time.After(trimPause):
		}
	}
	return s.surplusThreads() <= 0
}

// surplusThreads counts the threads that are more than are kept, below zero if there are fewer.
func (s *Server) surplusThreads() int {
	n := threads() - max(s.o.Threads, keptThreads)
	if s.reaper.waiting.Load() {
		n--
	}
	return n
}

// endThreads ends n threads, each by a goroutine that ends while it is locked to it.
func (s *Server) endThreads(n int) {
	runtime.LockOSThread()
	if n > 1 {
		s.work.Go(func() { s.endThreads(n - 1) }) // by another thread: this one is taken
	}
}

// threads counts the threads of this process; 0: nobody can tell.
func threads() int {
	var st unix.Stat_t
	if unix.Stat("/proc/self/task", &st) != nil {
		return 0
	}
	return int(st.Nlink) - 2 // each is a directory
}
