// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BecomeInit prepares process 1 of a pid namespace for its duties, before anything of
// the sandbox's runs: orphans are reaped, and signals that commands send have no effect. It
// fails in any other process, and changes nothing there. A server in a process 1 has
// Options.Init set.
//
// The kernel reaps all children by itself then. The status of a command is read off its
// pidfd, which keeps it (since Linux 6.15; for an older one see Options.Reap), and nobody
// is woken by an orphan.
//
// Go's runtime has a handler for every signal: of one that is sent it
// makes an end of the program, and of a fault's that is queued with sigqueue(3) a
// fault of its own. Without a handler the kernel drops what comes from inside, and
// still ends the process for a real fault. The runtime keeps those by which it preempts
// its own threads. What whoever started us had ignored is not handed on to commands.
//
// The kernel drops a signal only if the first thread does not block it just then, as a thread does
// while it starts a process or another thread; else one that ends a process by default ends
// process 1 (complete_signal in kernel/signal.c). On Linux 6.1 the root of a sandbox gets there
// within a second, by signals while commands start. So the caller runs in the first thread, locked
// to it (runtime.LockOSThread), and does nothing else there as long as the process lives. Go's
// handlers block all signals, too, so the signals that have one are left to the other threads.
func BecomeInit() error {
	if pid := os.Getpid(); pid != 1 {
		return errors.New("BecomeInit: this is process " + strconv.Itoa(pid) + " and not 1")
	}
	if unix.Gettid() != 1 {
		return errors.New("BecomeInit: the caller is not in the first thread")
	}
	byDefault, reaped := sigaction{}, sigaction{flags: noChildWait}
	for sig := unix.Signal(1); sig <= 64; sig++ {
		act := &byDefault
		switch sig {
		case unix.SIGKILL, unix.SIGSTOP, unix.SIGURG, unix.SIGPROF:
			continue
		case unix.SIGCHLD:
			act = &reaped
		}
		if err := handle(sig, act); err != nil && sig == unix.SIGCHLD {
			return err
		}
	}
	var preempt unix.Sigset_t
	preempt.Val[0] = 1<<(unix.SIGURG-1) | 1<<(unix.SIGPROF-1)
	return os.NewSyscallError("rt_sigprocmask", unix.PthreadSigmask(unix.SIG_BLOCK, &preempt, nil))
}

// handle is rt_sigaction(2), past Go's runtime.
func handle(sig unix.Signal, act *sigaction) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(act)), 0, 8, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("rt_sigaction", errno)
	}
	return nil
}

// sigaction is the kernel's struct sigaction: SIG_DFL, no restorer, an empty mask.
type sigaction struct {
	handler, flags, restorer, mask uint64
}

// noChildWait is SA_NOCLDWAIT. Unlike SIG_IGN it is not handed on to children.
const noChildWait = 2
