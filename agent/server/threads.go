// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Go's runtime makes a thread for each system call that takes long while others go on,
// and keeps it for ever: a busy moment, or a slow disk, would leave each idle process
// 1 with more of them. So those that wait for nothing are ended.

// keptThreads is how many are left: the first one, the runtime's two, the user's view,
// and either the root's or one for the next call that takes long. A reaper that waits
// has one more.
const keptThreads = 5

const (
	threadsQuiet = time.Second // nothing must have been done for so long before
	trimTries    = 3           // a busy machine may undo one
	trimPause    = 20 * time.Millisecond
)

// threaded is told when something was done for which there may be a new thread. Where
// the process is not 1, the threads are also somebody else's, and stay.
func (s *Server) threaded() {
	if s.o.Init {
		s.spare.used()
	}
}

// trimThreads ends the threads that are more than keptThreads.
func (s *Server) trimThreads() {
	for range trimTries {
		n := threads() - keptThreads
		if s.reaper.waiting.Load() {
			n--
		}
		if n <= 0 {
			return
		}
		s.work.Go(func() { s.endThreads(n, -1) })
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(trimPause):
		}
	}
}

// endThreads ends n threads, each by a goroutine that ends while it is locked to it.
//
// The first thread cannot end. The goroutine that meets it keeps it in a system call, so
// that the others meet the rest, and the last of them lets it go on: it then is the one
// that waits for work. release is the pipe by which; below zero: nobody met it yet.
func (s *Server) endThreads(n, release int) {
	runtime.LockOSThread()
	if release < 0 && unix.Gettid() == os.Getpid() {
		runtime.UnlockOSThread()
		var pipe [2]int
		if unix.Pipe2(pipe[:], unix.O_CLOEXEC) != nil {
			return
		}
		s.work.Go(func() { s.endThreads(n, pipe[1]) })
		_, _ = unix.Read(pipe[0], make([]byte, 1)) // its end
		_ = unix.Close(pipe[0])
		return
	}
	switch {
	case n > 1:
		s.work.Go(func() { s.endThreads(n-1, release) })
	case release >= 0:
		_ = unix.Close(release)
		// Raw, so that this thread keeps Go's processor and the first one, which finds none, is
		// the one that is taken when this ends.
		pause := unix.NsecToTimespec(int64(time.Millisecond))
		_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
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
