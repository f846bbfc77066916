// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// RunInit does the duties of process 1 as long as the process lives: it reaps
// orphans. To outlive the signals that the sandbox's root can send, the caller has called
// [DropSignals], before anything of the sandbox's ran. It is for
// a process that is 1 in its pid namespace, once, beside Serve, on the process's
// first thread, which it keeps: the caller's goroutine has been locked to that
// since it began. It returns at once, with an error, for any other. In a process
// that is not 1 orphans go elsewhere.
//
// It takes no status away from the Server: a child that the Server started
// is left for whoever waits for it.
//
// The kernel tells the thread that forked of a child's end, and the first thread of
// an orphan's. So the ends of commands, which come by their pidfds, disturb nobody
// here: of SIGCHLD only what is meant for the first thread is not ignored.
func (s *Server) RunInit() error {
	if os.Getpid() != 1 || unix.Gettid() != 1 {
		return errors.New("RunInit: this is thread " + strconv.Itoa(unix.Gettid()) + " of process " + strconv.Itoa(os.Getpid()) + ", not the first of process 1")
	}
	children := uint64(1) << (unix.SIGCHLD - 1)
	if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_BLOCK, uintptr(unsafe.Pointer(&children)), 0, 8, 0, 0); errno != 0 {
		return os.NewSyscallError("rt_sigprocmask", errno)
	}
	s.isInit.Store(true)
	defer s.isInit.Store(false)
	for {
		pause := orphanPause
		if s.reapOrphans() {
			pause = orphanRecheck
		}
		bound := unix.NsecToTimespec(int64(pause))
		_, _, errno := unix.Syscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&children)), 0, uintptr(unsafe.Pointer(&bound)), 8, 0, 0)
		if errno != 0 && errno != unix.EAGAIN && errno != unix.EINTR {
			return os.NewSyscallError("rt_sigtimedwait", errno)
		}
	}
}

// A signal that comes between a look and the wait goes to a thread that ignores
// it. The next orphan, the end of the next command or these bounds make it good.
const (
	orphanPause   = time.Minute
	orphanRecheck = time.Second
)

// DropSignals makes process 1 of a pid namespace deaf to what its commands may
// send it. Go's runtime has a handler for every signal: of one that is sent it
// makes an end of the program, and of a fault's that is queued with sigqueue(3) a
// fault of its own. Without a handler the kernel drops what comes from inside, and
// still ends the process for a real fault. It does not matter where the process is
// not 1; there the signals mean what they always mean.
//
// The runtime keeps those by which it preempts its own threads. What whoever
// started us had ignored is not handed on to commands.
func DropSignals() {
	var byDefault [4]uint64 // struct sigaction: SIG_DFL, no flags, no restorer, empty mask
	for sig := unix.Signal(1); sig <= 64; sig++ {
		switch sig {
		case unix.SIGKILL, unix.SIGSTOP, unix.SIGURG, unix.SIGPROF:
		default:
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
		}
	}
}

// reapOrphans takes all dead children that the Server did not start, and tells
// whether there were any. When it meets one that the Server did start it stops:
// who waits for that child takes it in a moment, and reaps orphans next. Where the
// process is not 1 it does nothing.
func (s *Server) reapOrphans() (any bool) {
	for s.isInit.Load() {
		pid, ok := deadChild()
		if !ok {
			break
		}
		s.forkMu.Lock() // no child is between its fork and its registration
		_, ours := s.children[pid]
		s.forkMu.Unlock()
		if ours {
			break
		}
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		any = true
	}
	return any
}

// deadChild looks at a child that has died, and leaves it.
func deadChild() (pid int, ok bool) {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || info.Signo == 0 {
			return 0, false
		}
		return siginfoPID(&info), true
	}
}

// siginfoPID reads si_pid: on 64-bit Linux the union begins 16 bytes in.
func siginfoPID(info *unix.Siginfo) int {
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), 16)))
}
