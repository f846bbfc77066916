// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Children of the portable method. Each is a fork(2): it goes on in a copy of the function that
// made it, on a copy of its stack. It is the only thread of its copy, in which locks may be held
// that nobody will release, so that the rules of the package comment hold for it, too.

// fork makes a child with a copy of the caller's memory. It returns twice, in the child with 0
// and with all signals blocked: a child must run no handler of Go's, and must not be ended by a
// signal that the terminal sends to all of the server's group. From the first call to the last
// the scheduler has no way to take the thread, by a signal neither: another goroutine never runs
// with signals blocked.
//
//go:norace
//go:nosplit
//go:nocheckptr
func fork(args *cloneArgs) (pid int, errno unix.Errno) {
	all, before := ^uint64(0), uint64(0)
	if _, _, e := syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, sigSetmask, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&before)), sigsetSize, 0, 0); e != 0 {
		return 0, e
	}
	r, _, e := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(args)), unsafe.Sizeof(*args), 0)
	if e == 0 && r == 0 {
		return 0, 0
	}
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, sigSetmask, uintptr(unsafe.Pointer(&before)), 0, sigsetSize, 0, 0)
	return int(r), e
}

// beginCopy makes the first child. That waits in vfork(2) until process 1 has its program, and
// ends then: nothing else tells of it where memory is not shared.
//
//go:norace
//go:noinline
//go:nocheckptr
func (p *plan) beginCopy() (pid int, errno unix.Errno) {
	p.inner.flags |= unix.CLONE_VFORK
	pid, errno = fork(&p.outer)
	if errno == 0 && pid == 0 {
		p.middleCopy()
	}
	return pid, errno
}

// middleCopy is the first child, and then also process 1. It does not return.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (p *plan) middleCopy() {
	if !p.enter() {
		exit(1)
	}
	pid, e := fork(&p.inner)
	if e != 0 {
		p.fail(stageClone, uintptr(e))
		exit(1)
	}
	if pid == 0 {
		p.exec()
		exit(1)
	}
	exit(0)
}

// beginCopy makes the child of a run.
//
//go:norace
//go:noinline
//go:nocheckptr
func (v *visit) beginCopy() (pid int, errno unix.Errno) {
	pid, errno = fork(&v.args)
	if errno == 0 && pid == 0 {
		if v.enter() {
			v.run.run()
		}
		exit(0)
	}
	return pid, errno
}

// parkCopy makes a child that sleeps until it is killed, by us or, since it has our files and so
// our locks, by the kernel when the thread that called ends. self is our pid.
//
//go:norace
//go:noinline
//go:nocheckptr
func parkCopy(args *cloneArgs, self uintptr) (pid int, errno unix.Errno) {
	pid, errno = fork(args)
	if errno == 0 && pid == 0 {
		syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
		parent, _, _ := syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
		for parent == self { // else it ended before the first line
			syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
		exit(0)
	}
	return pid, errno
}
