// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package fork

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// HasKeepers reports whether [Command.StartKept] is there on this processor.
const HasKeepers = true

//go:noescape
func cloneVforkOld(flags uintptr, pidfd *int32) (r, errno uintptr)

//go:noescape
func cloneKeeper(flags, stack, local, entry uintptr, pidfd *int32, k *kept) (r, errno uintptr)

// kept is what a keeper works on. It shares our memory and our descriptors, and is no thread of ours.
type kept struct {
	plan  *plan
	event int // an eventfd, written to when a word below changes

	// The keeper writes these, in this order, which this processor keeps; none is a pointer. We read them by
	// package atomic, whose functions are not for the keeper where races are looked for.
	child  int32
	errno  unix.Errno // of its own steps
	ready  uint32
	last   uint32 // of wait4
	status uint32
	done   uint32 // the command has ended, with status
	over   uint32 // nothing of it is left
}

// stackSize is of a keeper's stack, on which its child begins as well.
const (
	stackSize = 16 << 10
	localSize = 64 // above it
)

// Keeper is the process that a command was started below. It is the nearest parent of whatever that
// starts and leaves behind, however often it forks and whatever sessions it makes, and ends when all of
// it has. Methods are safe for concurrent use, but for Free.
type Keeper struct {
	PID   int
	PIDFD int // readable once it has ended

	k     *kept
	stack []byte
}

// StartKept is Start below a keeper, which is the caller's child in place of the command. It makes no use of clone3.
// The error is EOWNERDEAD where somebody killed the keeper: the command may run then, as the caller's own child.
func (c *Command) StartKept() (pid, pidfd int, keeper *Keeper, err error) {
	p, undo, err := c.plan()
	if err != nil {
		return 0, -1, nil, err
	}
	defer undo()
	p.resets = true
	k := &Keeper{PIDFD: -1, k: &kept{plan: p, event: -1}}
	if k.k.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return 0, -1, nil, err
	}
	if k.stack, err = unix.Mmap(-1, 0, stackSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
		k.Free()
		return 0, -1, nil, err
	}
	syscall.ForkLock.Lock() // see clone; the command's copy of our descriptors is made by the keeper
	defer syscall.ForkLock.Unlock()
	if errno := k.clone(); errno != 0 {
		k.Free()
		return 0, -1, nil, errno
	}
	err = k.await()
	runtime.KeepAlive(p)
	if err != nil {
		k.awaitEnd()
		k.Free()
		if err == unix.EOWNERDEAD && p.pidfd >= 0 { // of the command, which may run
			_ = unix.Close(int(p.pidfd))
		}
		return 0, -1, nil, err
	}
	k.k.plan = nil
	return int(k.k.child), int(p.pidfd), k, nil
}

// clone makes the keeper.
//
//go:norace
//go:noinline
//go:nocheckptr
func (k *Keeper) clone() unix.Errno {
	pidfd := int32(-1)
	// It has storage of a thread's own at the end of its stack: that of our thread, of which compiled code
	// reads before it calls assembler, may be gone with the thread.
	local := uintptr(unsafe.Pointer(&k.stack[len(k.stack)-64])) &^ 15
	begins := keep
	entry := **(**uintptr)(unsafe.Pointer(&begins))
	runtimeBeforeFork() // the keeper has all signals blocked for ever
	r, e := cloneKeeper(unix.CLONE_VM|unix.CLONE_FILES|unix.CLONE_PIDFD|unix.CLONE_SETTLS|uintptr(unix.SIGCHLD),
		local-localSize, local, entry, &pidfd, k.k)
	runtimeAfterFork()
	k.PID, k.PIDFD = int(r), int(pidfd)
	return unix.Errno(e)
}

// stopBound is how long a keeper may stand still while we wait for it, in milliseconds. A command of root's can
// stop it before it has told that the command runs.
const stopBound = 50

// await waits until the command's program was executed, or could not be.
func (k *Keeper) await() error {
	for atomic.LoadUint32(&k.k.ready) == 0 {
		fds := []unix.PollFd{{Fd: int32(k.k.event), Events: unix.POLLIN}, {Fd: int32(k.PIDFD), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, stopBound)
		if err != nil && err != unix.EINTR {
			return err
		}
		if n == 0 {
			_ = unix.PidfdSendSignal(k.PIDFD, unix.SIGCONT, nil, 0)
		}
		if fds[1].Revents != 0 && atomic.LoadUint32(&k.k.ready) == 0 { // somebody killed it
			return unix.EOWNERDEAD
		}
	}
	var b [8]byte
	_, _ = unix.Read(k.k.event, b[:])
	if k.k.errno != 0 {
		return k.k.errno
	}
	if errno := k.k.plan.errno; errno != 0 {
		if k.k.plan.pidfd >= 0 {
			_ = unix.Close(int(k.k.plan.pidfd))
		}
		return errno
	}
	return nil
}

// awaitEnd waits for the end of the keeper.
func (k *Keeper) awaitEnd() {
	for {
		fds := []unix.PollFd{{Fd: int32(k.PIDFD), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, -1); n > 0 || err != nil && err != unix.EINTR {
			return
		}
	}
}

// Kill ends the keeper alone, waits for that, and frees it.
func (k *Keeper) Kill() {
	_ = unix.PidfdSendSignal(k.PIDFD, unix.SIGKILL, nil, 0)
	k.awaitEnd()
	k.Free()
}

// Event returns a descriptor that is readable after the command's end. It is the caller's.
func (k *Keeper) Event() (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(k.k.event), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "keeper"), nil
}

// Status returns how the command ended, and whether it has.
func (k *Keeper) Status() (unix.WaitStatus, bool) {
	if atomic.LoadUint32(&k.k.done) == 0 {
		return 0, false
	}
	return unix.WaitStatus(k.k.status), true
}

// Over reports whether nothing of the command is left. A keeper that ends before was killed.
func (k *Keeper) Over() bool { return atomic.LoadUint32(&k.k.over) != 0 }

// Free reaps a keeper that has ended, if nobody else did, and gives back what it used.
func (k *Keeper) Free() {
	if k.PID > 0 {
		reapNow(k.PID)
	}
	if k.PIDFD >= 0 {
		_ = unix.Close(k.PIDFD)
	}
	if k.k.event >= 0 {
		_ = unix.Close(k.k.event)
	}
	if k.stack != nil {
		_ = unix.Munmap(k.stack)
	}
	k.PIDFD, k.k.event, k.stack = -1, -1, nil
}

// reapNow is wait4 of a child that may be reaped.
func reapNow(pid int) {
	for {
		if _, err := unix.Wait4(pid, nil, unix.WNOHANG|unix.WALL, nil); err != unix.EINTR {
			return
		}
	}
}

// keep is the keeper, from its first instruction to its last. See the package's rules: it goes on for as long
// as the command has anything left, while our memory changes around it, and touches nothing of that but k.
//
//go:norace
//go:nosplit
//go:nocheckptr
func keep(k *kept) {
	p := k.plan
	// Of process 1 it has an action by which the kernel reaps, and would leave us no status.
	_, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGCHLD), uintptr(unsafe.Pointer(&p.byDefault)), 0, 8, 0, 0)
	if errno == 0 {
		_, _, errno = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0)
	}
	if errno == 0 {
		r, e := cloneVforkOld(unix.CLONE_VM|unix.CLONE_VFORK|unix.CLONE_PIDFD|uintptr(unix.SIGCHLD), &p.pidfd)
		if r == 0 && e == 0 {
			p.exec()
			for {
				syscall.RawSyscall(unix.SYS_EXIT_GROUP, 253, 0, 0)
			}
		}
		k.child, errno = int32(r), unix.Errno(e)
	}
	k.errno = errno
	k.ready = 1
	k.tell()
	for {
		r, _, errno := syscall.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&k.last)), unix.WALL, 0, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			break
		}
		if int32(r) == k.child {
			k.status = k.last
			k.done = 1
			k.tell()
		}
	}
	k.over = 1
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// tell makes the event readable.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (k *kept) tell() {
	one := uint64(1)
	syscall.RawSyscall(unix.SYS_WRITE, uintptr(k.event), uintptr(unsafe.Pointer(&one)), 8)
}
