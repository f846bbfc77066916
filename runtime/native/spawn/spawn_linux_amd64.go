// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Namespaces are those that every sandbox has, beside its user namespace.
const Namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// Process says what to start.
type Process struct {
	Program *os.File   // executed by descriptor; O_PATH is enough
	Args    []string   // argv, the name first
	Env     []string   // KEY=VALUE
	Files   []*os.File // become descriptors 0, 1, 2, …; all others are closed
	UserNS  *os.File   // joined; process 1 is its root
	NetNS   *os.File   // joined; it belongs to UserNS
	Cgroup  *os.File   // cgroup2 directory to start in; nil: the caller's
	Groups  []*os.File // tasks files of v1 cgroups to start in, open for writing
	Mounts  *os.File   // mount namespace to begin with a copy of; nil: the caller's
	// Tape is played by process 1 itself, in all its namespaces and with all capabilities
	// there, before it executes the program. What it opens is closed. Nil: there is none.
	Tape *Tape
	// KeepCaps is the capability bounding set that process 1 keeps, a bit for
	// each capability.
	KeepCaps uint64
}

// TimerSlack is how late the kernel may end a sleep of process 1, in nanoseconds.
// The usual 50 µs let a thread of Go's runtime wake, and preempt what runs, nine
// times a millisecond while the agent works.
const TimerSlack = 500_000

// Start starts process 1 and returns its pid, as the caller's own namespace
// counts, once execve succeeded. The caller is its parent and must reap it. It
// blocks its thread for about 0.5 ms. The child inherits what belongs to the
// calling thread: v1 cgroups that none of Groups is of, and nothing else that it does not reset.
func (s *Starter) Start(p Process) (pid int, err error) {
	pl := plan{keepCaps: p.KeepCaps, cgroup: -1, mounts: noFile, userns: p.UserNS.Fd(), netns: p.NetNS.Fd(), empty: &[]byte{0}[0], zero: '0'}
	if len(p.Files) > maxFiles {
		return 0, fmt.Errorf("start process 1: %d files are more than %d", len(p.Files), maxFiles)
	}
	places := <-s.free
	defer func() {
		s.clear(places)
		s.free <- places
	}()
	place := func(i int, f *os.File) (uintptr, error) {
		if err := unix.Dup3(int(f.Fd()), places[i], unix.O_CLOEXEC); err != nil {
			return 0, fmt.Errorf("start process 1: place descriptor %d: %w", f.Fd(), err)
		}
		return uintptr(places[i]), nil
	}
	if pl.program, err = place(maxFiles, p.Program); err != nil {
		return 0, err
	}
	for i, f := range p.Files {
		if pl.files[i], err = place(i, f); err != nil {
			return 0, err
		}
	}
	pl.nfiles, pl.above = len(p.Files), uintptr(slices.Max(places[:])+1)
	if p.Mounts != nil {
		pl.mounts = p.Mounts.Fd()
	}
	if len(p.Groups) > len(pl.groups) {
		return 0, fmt.Errorf("start process 1: %d v1 cgroups are more than %d", len(p.Groups), len(pl.groups))
	}
	for i, f := range p.Groups {
		pl.groups[i] = f.Fd()
	}
	pl.ngroups = len(p.Groups)
	if p.Cgroup != nil {
		pl.cgroup = int(p.Cgroup.Fd())
	}
	if pl.argv, err = syscall.SlicePtrFromStrings(p.Args); err != nil {
		return 0, fmt.Errorf("start process 1: arguments: %w", err)
	}
	if pl.envp, err = syscall.SlicePtrFromStrings(p.Env); err != nil {
		return 0, fmt.Errorf("start process 1: environment: %w", err)
	}

	if p.Tape != nil {
		pl.tape = &run{calls: p.Tape.calls, failed: -1}
	}

	middle, errno := vfork(&pl)
	runtime.KeepAlive(p)
	if errno != 0 {
		return 0, fmt.Errorf("start process 1: clone3: %w", errno)
	}
	_, werr := wait(middle)
	if pl.tape != nil {
		pl.tape.opened().Close()
	}
	if pl.failed != stageNone {
		if pl.pid != 0 {
			_, _ = wait(pl.pid)
		}
		if pl.failed == stageTape {
			return 0, fmt.Errorf("start process 1: %w", pl.tape.err())
		}
		return 0, fmt.Errorf("start process 1: %s: %w", pl.failed, pl.errno)
	}
	if werr != nil {
		return 0, fmt.Errorf("start process 1: wait for the first child: %w", werr)
	}
	return pl.pid, nil
}

// noFile is no descriptor.
const noFile = ^uintptr(0)

const sigSetmask = 2 // SIG_SETMASK

// plan is what the children work from; they write their results to it.
type plan struct {
	program  uintptr
	argv     []*byte
	envp     []*byte
	files    [maxFiles]uintptr
	nfiles   int
	above    uintptr // no descriptor that is needed has this number or a higher one
	userns   uintptr
	netns    uintptr
	mounts   uintptr // or noFile
	groups   [8]uintptr
	ngroups  int
	cgroup   int
	keepCaps uint64
	tape     *run // or nil
	empty    *byte
	zero     byte // '0'

	unblocked uint64 // the signals that process 1 starts with blocked: none

	pid    int // of process 1
	failed stage
	errno  unix.Errno
}

// stage names the step of a child that failed.
type stage int

const (
	stageNone stage = iota
	stageCgroups
	stageMounts
	stageUserNS
	stageJoin
	stageIDs
	stageGroups
	stageNetNS
	stageUnshare
	stageClone
	stageTape
	stageFiles
	stageCaps
	stageSignals
	stageExec
)

func (s stage) String() string {
	return [...]string{
		"", "join its v1 cgroups", "join the mounts to begin with", "join the user namespace", "join its namespaces", "become its root", "drop groups", "join the network namespace", "unshare namespaces",
		"clone process 1", "play its tape", "place descriptors", "drop capabilities", "unblock signals", "execute the agent",
	}[s]
}

// vfork makes the first child and returns in the parent once that child is
// gone and its own child has executed the program or failed.
//
//go:norace
//go:noinline
//go:nocheckptr
func vfork(p *plan) (pid int, errno unix.Errno) {
	// The first child shares the descriptors' table: it opens and closes
	// nothing, and copying a large table is dear.
	// No signal tells its end, which would only interrupt one of our threads: it is waited for.
	outer := cloneArgs{flags: unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_FILES | unix.CLONE_CLEAR_SIGHAND}
	if p.cgroup >= 0 {
		outer.flags |= unix.CLONE_INTO_CGROUP
		outer.cgroup = uint64(p.cgroup)
	}
	// So does the second, until it takes what it needs of the table: see exec. Once it
	// executes the agent, its end is told by SIGCHLD, as that of any program.
	inner := cloneArgs{flags: unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_FILES | unix.CLONE_PARENT}

	runtimeBeforeFork()
	r, e := cloneVfork(&outer, unsafe.Sizeof(outer))
	if e != 0 || r != 0 {
		runtimeAfterFork()
		return int(r), unix.Errno(e)
	}
	if !p.enter() {
		exit(1)
	}
	r, e = cloneVfork(&inner, unsafe.Sizeof(inner))
	if e != 0 {
		p.fail(stageClone, e)
		exit(1)
	}
	if r != 0 {
		p.pid = int(r)
		exit(0)
	}
	p.exec()
	exit(1)
	return 0, 0
}

// becomeRoot takes on the ids of the root of the user namespace that was joined.
//
//go:norace
//go:nosplit
//go:nocheckptr
func becomeRoot() (failed stage, errno uintptr) {
	// gid first: after setuid the child may not change it.
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, 0, 0, 0); e != 0 {
		return stageIDs, uintptr(e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, 0, 0, 0); e != 0 {
		return stageIDs, uintptr(e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return stageGroups, uintptr(e)
	}
	return stageNone, 0
}

// enter joins and makes the namespaces.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (p *plan) enter() bool {
	for i := 0; i < p.ngroups; i++ {
		if _, _, e := unix.RawSyscall(unix.SYS_WRITE, p.groups[i], uintptr(unsafe.Pointer(&p.zero)), 1); e != 0 {
			return p.fail(stageCgroups, uintptr(e))
		}
	}
	if p.mounts != noFile {
		if _, _, e := unix.RawSyscall(unix.SYS_SETNS, p.mounts, unix.CLONE_NEWNS, 0); e != 0 {
			return p.fail(stageMounts, uintptr(e))
		}
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETNS, p.userns, unix.CLONE_NEWUSER, 0); e != 0 {
		return p.fail(stageUserNS, uintptr(e))
	}
	if s, e := becomeRoot(); s != stageNone {
		return p.fail(s, e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETNS, p.netns, unix.CLONE_NEWNET, 0); e != 0 {
		return p.fail(stageNetNS, uintptr(e))
	}
	if _, _, e := unix.RawSyscall(unix.SYS_UNSHARE, Namespaces&^unix.CLONE_NEWNET, 0, 0); e != 0 {
		return p.fail(stageUnshare, uintptr(e))
	}
	// A process starts with its parent's timer slack. It cannot fail.
	unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, TimerSlack, 0, 0, 0, 0)
	return true
}

// exec runs in process 1 and returns only when it failed.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (p *plan) exec() {
	if p.tape != nil {
		if p.tape.play(); !p.tape.done {
			p.fail(stageTape, uintptr(p.tape.errno))
			return
		}
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0); e != 0 {
		p.fail(stageFiles, uintptr(e))
		return
	}
	// The table is still the server's. Only its beginning is copied: what all sandboxes have
	// open is thousands, and the last to let go of an overlay waits for the disk.
	if _, _, e := unix.RawSyscall(unix.SYS_CLOSE_RANGE, p.above, ^uintptr(0)>>32, unix.CLOSE_RANGE_UNSHARE); e != 0 {
		p.fail(stageFiles, uintptr(e))
		return
	}
	for i := 0; i < p.nfiles; i++ {
		if _, _, e := unix.RawSyscall(unix.SYS_DUP3, p.files[i], uintptr(i), 0); e != 0 {
			p.fail(stageFiles, uintptr(e))
			return
		}
	}
	// Whatever the server, or its parent, had open without close-on-exec must
	// not reach the sandbox.
	if _, _, e := unix.RawSyscall(unix.SYS_CLOSE_RANGE, uintptr(p.nfiles), ^uintptr(0)>>32, unix.CLOSE_RANGE_CLOEXEC); e != 0 {
		p.fail(stageFiles, uintptr(e))
		return
	}
	for c := uintptr(0); c < 64; c++ {
		if p.keepCaps&(1<<c) != 0 {
			continue
		}
		if _, _, e := unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0, 0); e != 0 {
			if e == unix.EINVAL { // past the last capability of this kernel
				break
			}
			p.fail(stageCaps, uintptr(e))
			return
		}
	}
	// Handlers went with CLONE_CLEAR_SIGHAND; the mask is still that of a fork in Go.
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, sigSetmask, uintptr(unsafe.Pointer(&p.unblocked)), 0, 8, 0, 0); e != 0 {
		p.fail(stageSignals, uintptr(e))
		return
	}
	_, _, e := unix.RawSyscall6(unix.SYS_EXECVEAT, p.program, uintptr(unsafe.Pointer(p.empty)),
		uintptr(unsafe.Pointer(unsafe.SliceData(p.argv))), uintptr(unsafe.Pointer(unsafe.SliceData(p.envp))), unix.AT_EMPTY_PATH, 0)
	p.fail(stageExec, uintptr(e))
}

//go:norace
//go:nosplit
func (p *plan) fail(s stage, errno uintptr) bool {
	p.failed, p.errno = s, unix.Errno(errno)
	return false
}

//go:norace
//go:nosplit
func exit(code uintptr) {
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, code, 0, 0)
	}
}
