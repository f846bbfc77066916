// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package fork

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cloneArgs is the kernel's struct clone_args, see clone3(2): flags, pidfd,
// child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
// set_tid_size, cgroup. What is not named stays zero.
type cloneArgs struct {
	flags      uint64
	pidfd      uint64
	_          [2]uint64
	exitSignal uint64
	_          [5]uint64
	cgroup     uint64
}

//go:noescape
func cloneVfork(args *cloneArgs, size uintptr) (r, errno uintptr)

// The hooks of the runtime around a fork, as package syscall has them: block
// all signals, and put the mask back.

//go:linkname runtimeBeforeFork syscall.runtime_BeforeFork
func runtimeBeforeFork()

//go:linkname runtimeAfterFork syscall.runtime_AfterFork
func runtimeAfterFork()

// sigevent is the kernel's struct sigevent for a signal to the process, and timespec two
// of its struct timespec: how often, and when first.
type sigevent struct {
	value         uint64
	signo, notify int32
	_             [48]byte
}

type timespecs struct{ every, everyNS, first, firstNS int64 }

// firstFree is the least number of the descriptors that the child copies from,
// so that no target of a copy is the source of a later one.
const firstFree = 3

// plan is what the child works from; it writes errno.
type plan struct {
	args        cloneArgs
	program     *byte
	argv        []*byte
	envp        []*byte
	dir         int
	files       [3]int
	terminal    bool
	cred        *syscall.Credential
	ambient     []uintptr
	kill        sigevent
	when        timespecs
	timer       int32
	head        unix.CapUserHeader
	caps        [2]unix.CapUserData
	unmask      uint64 // the empty set of signals
	resets      bool   // all signals get their defaults by calls: the clone did not see to it
	ignored     []uintptr
	byDefault   [4]uint64    // the kernel's struct sigaction: SIG_DFL
	descriptors *unix.Rlimit // nil: the caller's

	pidfd int32
	errno unix.Errno // of the step that failed
}

// MayBeAlone is that commands can be [Command].Alone on this processor.
const MayBeAlone = true

func (c *Command) clone() (pid, pidfd int, err error) {
	p, undo, err := c.plan()
	if err != nil {
		return 0, -1, err
	}
	defer undo()
	syscall.ForkLock.Lock() // who makes descriptors without close-on-exec holds it
	pid, errno := p.vfork()
	syscall.ForkLock.Unlock()
	runtime.KeepAlive(p)
	switch errno {
	case 0:
	case unix.ENOSYS, unix.EINVAL, unix.EPERM:
		return 0, -1, errRefused
	default:
		return 0, -1, errno
	}
	if p.errno != 0 {
		reap(pid)
		_ = unix.Close(int(p.pidfd))
		return 0, -1, p.errno
	}
	return pid, int(p.pidfd), nil
}

// plan prepares what the child needs. undo comes when it was made.
func (c *Command) plan() (p *plan, undo func(), err error) {
	p = &plan{
		dir: c.Dir, files: c.Files, terminal: c.Terminal, cred: c.Credential, ambient: c.AmbientCaps,
		kill:  sigevent{signo: int32(unix.SIGKILL)},
		when:  timespecs{first: Patience},
		head:  unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3},
		pidfd: -1,
		args: cloneArgs{
			flags:      unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_PIDFD | unix.CLONE_CLEAR_SIGHAND,
			exitSignal: uint64(unix.SIGCHLD),
		},
	}
	for _, sig := range ignored() {
		p.ignored = append(p.ignored, uintptr(sig.(syscall.Signal))) // CLONE_CLEAR_SIGHAND keeps them
	}
	if c.OpenFiles > 0 {
		p.descriptors = c.openFiles()
	}
	if c.Group >= 0 {
		p.args.flags |= unix.CLONE_INTO_CGROUP
		p.args.cgroup = uint64(c.Group)
	}
	if p.program, err = syscall.BytePtrFromString(c.Program); err != nil {
		return nil, nil, err
	}
	if p.argv, err = syscall.SlicePtrFromStrings(c.Argv); err != nil {
		return nil, nil, err
	}
	if p.envp, err = syscall.SlicePtrFromStrings(c.Env); err != nil {
		return nil, nil, err
	}
	var copies []int
	undo = func() {
		for _, fd := range copies {
			_ = unix.Close(fd)
		}
	}
	for i, fd := range p.files {
		if fd >= firstFree {
			continue
		}
		if p.files[i], err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, firstFree); err != nil {
			undo()
			return nil, nil, err
		}
		copies = append(copies, p.files[i])
	}
	return p, undo, nil
}

func reap(pid int) {
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
			return
		}
	}
}

// vfork makes the child, and returns once that has executed its program or is gone.
//
//go:norace
//go:noinline
//go:nocheckptr
func (p *plan) vfork() (pid int, errno unix.Errno) {
	runtimeBeforeFork()
	p.args.pidfd = uint64(uintptr(unsafe.Pointer(&p.pidfd))) // p cannot move now
	r, e := cloneVfork(&p.args, unsafe.Sizeof(p.args))
	if e != 0 || r != 0 {
		runtimeAfterFork()
		return int(r), unix.Errno(e)
	}
	p.exec()
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 253, 0, 0)
	}
}

// exec runs in the child and returns only when it failed. From the moment that it is
// the user's, the user's other processes may stop it, while we stand still on a
// processor of Go's. So it kills itself by a timer, which execve takes away. Rights go before the
// directory is entered: it must be the user's to enter.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (p *plan) exec() {
	if p.fail(syscall.RawSyscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&p.kill)), uintptr(unsafe.Pointer(&p.timer)))) ||
		p.fail(syscall.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(p.timer), 0, uintptr(unsafe.Pointer(&p.when)), 0, 0, 0)) {
		return
	}
	if p.descriptors != nil && p.fail(syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(p.descriptors)), 0, 0, 0)) {
		return
	}
	if p.fail(syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0)) || !p.stepDown() {
		return
	}
	if p.fail(syscall.RawSyscall(unix.SYS_FCHDIR, uintptr(p.dir), 0, 0)) {
		return
	}
	for i := 0; i < len(p.files); i++ {
		if p.fail(syscall.RawSyscall(unix.SYS_DUP3, uintptr(p.files[i]), uintptr(i), 0)) {
			return
		}
	}
	if p.terminal && p.fail(syscall.RawSyscall(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 1)) {
		return
	}
	if p.resets {
		for sig := uintptr(1); sig <= 64; sig++ { // of two of them the kernel refuses it
			syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&p.byDefault)), 0, 8, 0, 0)
		}
	}
	for i := 0; i < len(p.ignored); i++ {
		if p.fail(syscall.RawSyscall6(unix.SYS_RT_SIGACTION, p.ignored[i], uintptr(unsafe.Pointer(&p.byDefault)), 0, 8, 0, 0)) {
			return
		}
	}
	// All are blocked since before the clone, and none is of ours to handle.
	if p.fail(syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&p.unmask)), 0, 8, 0, 0)) {
		return
	}
	// execve would close them, too, but looks the program up before: no path may lead through what is ours.
	if p.fail(syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 3, ^uintptr(0)>>32, 0)) {
		return
	}
	p.fail(syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(p.program)),
		uintptr(unsafe.Pointer(unsafe.SliceData(p.argv))), uintptr(unsafe.Pointer(unsafe.SliceData(p.envp)))))
}

// stepDown takes on the credentials, and keeps the ambient capabilities.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (p *plan) stepDown() bool {
	if len(p.ambient) > 0 && p.fail(syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, 1, 0, 0, 0, 0)) {
		return false
	}
	if c := p.cred; c != nil {
		if !c.NoSetGroups && p.fail(syscall.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(c.Groups)), uintptr(unsafe.Pointer(unsafe.SliceData(c.Groups))), 0)) {
			return false
		}
		if p.fail(syscall.RawSyscall(unix.SYS_SETGID, uintptr(c.Gid), 0, 0)) || p.fail(syscall.RawSyscall(unix.SYS_SETUID, uintptr(c.Uid), 0, 0)) {
			return false
		}
	}
	if len(p.ambient) == 0 {
		return true
	}
	// Only what is permitted and inheritable can be ambient.
	if p.fail(syscall.RawSyscall(unix.SYS_CAPGET, uintptr(unsafe.Pointer(&p.head)), uintptr(unsafe.Pointer(&p.caps[0])), 0)) {
		return false
	}
	for i := 0; i < len(p.ambient); i++ {
		word, bit := &p.caps[(p.ambient[i]>>5)&1], uint32(1)<<(p.ambient[i]&31)
		word.Permitted |= bit
		word.Inheritable |= bit
	}
	if p.fail(syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&p.head)), uintptr(unsafe.Pointer(&p.caps[0])), 0)) {
		return false
	}
	for i := 0; i < len(p.ambient); i++ {
		if p.fail(syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, p.ambient[i], 0, 0, 0)) {
			return false
		}
	}
	return true
}

// fail keeps the error of a step, if it had one.
//
//go:norace
//go:nosplit
func (p *plan) fail(_, _ uintptr, errno unix.Errno) bool {
	p.errno = errno
	return errno != 0
}
