// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"unsafe"

	"golang.org/x/sys/unix"
)

// RunInit does the duties of process 1 until ctx is done: it reaps orphans, and
// outlives the signals that the sandbox's root can send it. It is for a
// process that is 1 in its pid namespace, once, beside Serve. In any other process
// orphans go elsewhere, and signals mean what they always mean.
//
// It takes no status away from the Server: a child that the Server started
// is left for whoever waits for it.
func (s *Server) RunInit(ctx context.Context) error {
	if os.Getpid() != 1 {
		return errors.New("RunInit: the process has the number " + pidText() + ", not 1")
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	defer signal.Stop(children)
	DropSignals()
	s.isInit.Store(true)
	defer s.isInit.Store(false)
	for {
		s.reapOrphans()
		select {
		case <-ctx.Done():
			return nil
		case <-children:
		case <-s.poke:
		}
	}
}

// DropSignals makes process 1 of a pid namespace deaf to what its commands may
// send it. Go's runtime has a handler for every signal: of one that is sent it
// makes an end of the program, and of a fault's that is queued with sigqueue(3) a
// fault of its own. Without a handler the kernel drops what comes from inside, and
// still ends the process for a real fault. It does not matter where the process is
// not 1; there the signals mean what they always mean.
//
// The runtime keeps those by which it preempts its own threads, and SIGCHLD. What
// whoever started us had ignored is not handed on to commands.
func DropSignals() {
	var byDefault [4]uint64 // struct sigaction: SIG_DFL, no flags, no restorer, empty mask
	for sig := unix.Signal(1); sig <= 64; sig++ {
		switch sig {
		case unix.SIGCHLD, unix.SIGKILL, unix.SIGSTOP, unix.SIGURG, unix.SIGPROF:
		default:
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
		}
	}
}

func pidText() string {
	var b [20]byte
	i := len(b)
	for n := os.Getpid(); n > 0; n /= 10 {
		i--
		b[i] = byte('0' + n%10)
	}
	return string(b[i:])
}

// poked makes the reaper look again, after a child of ours was taken from before its eyes.
func (s *Server) poked() {
	if !s.isInit.Load() {
		return
	}
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// reapOrphans takes all dead children that the Server did not start. When it
// meets one that the Server did start it stops: who waits for that child takes
// it in a moment, and pokes.
func (s *Server) reapOrphans() {
	for {
		pid, ok := deadChild()
		if !ok {
			return
		}
		s.forkMu.Lock() // no child is between its fork and its registration
		_, ours := s.children[pid]
		s.forkMu.Unlock()
		if ours {
			return
		}
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
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
