// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
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
	// CgroupNS is joined; nil: it gets one of its own, whose root is the group it starts in.
	CgroupNS *os.File
	// Script is run by process 1 itself, in all its namespaces and with all capabilities
	// there, before it executes the program. What it opens is closed. Nil: there is none.
	Script *Script
	// KeepCaps is the capability bounding set that process 1 keeps, a bit for
	// each capability.
	KeepCaps uint64
}

// TimerSlack is how late the kernel may end a sleep of process 1, in nanoseconds.
// The usual 50 µs let a thread of Go's runtime wake, and preempt what runs, nine
// times a millisecond while the agent works.
const TimerSlack = 500_000

// Birth is a process 1 on its way to its program. It is ended by Wait, until when all files
// that it was given stay open.
type Birth struct {
	s      *Starter
	p      Process // kept for its descriptors
	slot   *slot
	middle int

	joined       bool // the first child
	middleErr    error
	middleKilled bool
}

// Begin begins to start process 1, and does not wait for it: that takes 0.5 ms, on
// another processor where there is one. The caller becomes its parent. The child inherits
// what belongs to the calling thread: v1 cgroups that none of Groups is of, and nothing else
// that it does not reset.
// ctx bounds the wait for others' births, of which there are only so many at a time.
func (s *Starter) Begin(ctx context.Context, p Process) (_ *Birth, err error) {
	if len(p.Files) > maxFiles {
		return nil, fmt.Errorf("start process 1: %d files are more than %d", len(p.Files), maxFiles)
	}
	var slot *slot
	select {
	case slot = <-s.free:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() {
		if err != nil {
			s.release(slot)
		}
	}()
	report, err := newReport(s.method)
	if err != nil {
		return nil, fmt.Errorf("start process 1: %w", err)
	}
	pl := &plan{method: s.method, report: report, keepCaps: p.KeepCaps, mounts: noFile, groupns: noFile, userns: p.UserNS.Fd(), netns: p.NetNS.Fd(), empty: &[]byte{0}[0], zero: '0'}
	slot.plan = pl // its memory stays where it is, whatever becomes of the Birth
	place := func(i int, f *os.File) (uintptr, error) {
		if err := unix.Dup3(int(f.Fd()), slot.places[i], unix.O_CLOEXEC); err != nil {
			return 0, fmt.Errorf("start process 1: place descriptor %d: %w", f.Fd(), err)
		}
		return uintptr(slot.places[i]), nil
	}
	if pl.program, err = place(maxFiles, p.Program); err != nil {
		return nil, err
	}
	for i, f := range p.Files {
		if pl.files[i], err = place(i, f); err != nil {
			return nil, err
		}
	}
	pl.nfiles, pl.above = len(p.Files), uintptr(slices.Max(slot.places[:])+1)
	if p.Mounts != nil {
		pl.mounts = p.Mounts.Fd()
	}
	if len(p.Groups) > len(pl.groups) {
		return nil, fmt.Errorf("start process 1: %d v1 cgroups are more than %d", len(p.Groups), len(pl.groups))
	}
	for i, f := range p.Groups {
		pl.groups[i] = f.Fd()
	}
	pl.ngroups = len(p.Groups)
	if p.CgroupNS != nil {
		pl.groupns = p.CgroupNS.Fd()
	}
	if pl.argv, err = syscall.SlicePtrFromStrings(p.Args); err != nil {
		return nil, fmt.Errorf("start process 1: arguments: %w", err)
	}
	if pl.envp, err = syscall.SlicePtrFromStrings(p.Env); err != nil {
		return nil, fmt.Errorf("start process 1: environment: %w", err)
	}
	if p.Script != nil {
		pl.script = &run{calls: p.Script.calls, played: &pl.report.script}
	}

	// The first child shares the descriptors' table: it opens and closes nothing, and copying a
	// large table is dear. No signal tells its end, which would only interrupt one of our
	// threads: it is waited for.
	pl.outer = cloneArgs{flags: unix.CLONE_FILES | unix.CLONE_CLEAR_SIGHAND}
	if p.Cgroup != nil {
		pl.outer.flags |= unix.CLONE_INTO_CGROUP
		pl.outer.cgroup = uint64(p.Cgroup.Fd())
	}
	// So does the second, until it takes what it needs of the table: see exec. Once it
	// executes the agent, its end is told by SIGCHLD, as that of any program.
	pl.inner = cloneArgs{flags: unix.CLONE_FILES | unix.CLONE_PARENT | unix.CLONE_PARENT_SETTID}
	pl.inner.parentTID = uint64(uintptr(unsafe.Pointer(&pl.report.pid)))

	middle, errno := pl.begin()
	if errno != 0 {
		return nil, fmt.Errorf("start process 1: clone3: %w", errno)
	}
	return &Birth{s: s, p: p, slot: slot, middle: middle}, nil
}

// Born waits until process 1 is in its namespaces and has run its script, and returns its
// pid, as the caller's own namespace counts. It may be called before Wait, once, for what
// can be done to process 1 while that comes to its program; after an error Wait says more.
func (b *Birth) Born() (pid int, err error) {
	pl := b.slot.plan
	if !pl.method.copies() { // else the first child waits for the program
		if b.join(); pl.report.pid == 0 {
			return 0, errNotBorn
		}
	}
	// It takes a few microseconds: who sleeps is not awake again as soon.
	for began := time.Now(); atomic.LoadUint32(&pl.report.ready) == 0; {
		if b.over() && atomic.LoadUint32(&pl.report.ready) == 0 {
			return 0, errNotBorn // it has ended
		}
		if time.Since(began) > bornPatience {
			b.awaitProgram()
			continue
		}
		_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	return int(pl.report.pid), nil
}

// bornPatience is how long Born looks again and again.
const bornPatience = time.Millisecond

var errNotBorn = errors.New("start process 1: it has not come so far")

// join waits for the first child, which ends once it has made process 1, or, where memory is
// copied, once that has executed its program or ended.
func (b *Birth) join() {
	if !b.joined {
		b.joined = true
		var ws unix.WaitStatus
		ws, b.middleErr = wait(b.middle)
		b.middleKilled = ws.Signaled()
	}
}

// Wait waits until process 1 has executed its program, and returns its pid; the caller must
// reap it. After an error there is none. It is called once, and last.
func (b *Birth) Wait() (pid int, err error) {
	pl := b.slot.plan
	b.join()
	if pid = int(pl.report.pid); pid != 0 {
		b.awaitProgram()
	}
	runtime.KeepAlive(b.p)
	defer b.s.release(b.slot)
	if pl.script != nil {
		pl.script.opened().Close()
	}
	switch {
	case pl.report.failed == stageScript:
		err = fmt.Errorf("start process 1: %w", pl.script.err())
	case pl.report.failed != stageNone:
		err = fmt.Errorf("start process 1: %s: %w", pl.report.failed, pl.report.errno)
	case b.middleErr != nil:
		err = fmt.Errorf("start process 1: wait for the first child: %w", b.middleErr)
	case pid == 0, b.middleKilled && pl.method.copies(): // it did not see process 1 arrive
		err = errors.New("start process 1: the first child was killed")
	default:
		return pid, nil
	}
	if pid != 0 {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = wait(pid)
	}
	return 0, err
}

// over reports whether process 1 has executed its program or ended. Where memory is copied, it
// also does where the first child was killed before that.
func (b *Birth) over() bool {
	pl := b.slot.plan
	if !pl.method.copies() {
		return atomic.LoadUint32(&pl.ours) == 0
	}
	if !b.joined {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(b.middle, &ws, unix.WALL|unix.WNOHANG, nil)
		if pid == 0 && err == nil || err == unix.EINTR {
			return false
		}
		b.joined, b.middleErr, b.middleKilled = true, err, ws.Signaled()
	}
	return true
}

// awaitProgram waits until process 1 no longer has its parent's memory, having executed its
// program or ended: the kernel clears the word then, and wakes who waits for it. It does so
// only where memory is shared; else the first child waits in vfork(2), and ends then.
func (b *Birth) awaitProgram() {
	pl := b.slot.plan
	if pl.method.copies() {
		b.join()
		return
	}
	for atomic.LoadUint32(&pl.ours) != 0 {
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&pl.ours)), futexWait, 1, 0, 0, 0)
	}
}

const futexWait = 0 // FUTEX_WAIT: not private, since the kernel's own wake is not

// noFile is no descriptor.
const noFile = ^uintptr(0)

const (
	sigSetmask = 2 // SIG_SETMASK
	sigsetSize = 8 // the kernel's
)

// plan is what the children work from; they write their results to its report.
type plan struct {
	method   Method
	report   *report
	program  uintptr
	argv     []*byte
	envp     []*byte
	files    [maxFiles]uintptr
	nfiles   int
	above    uintptr // no descriptor that is needed has this number or a higher one
	userns   uintptr
	netns    uintptr
	mounts   uintptr // or noFile
	groupns  uintptr // or noFile
	groups   [8]uintptr
	ngroups  int
	keepCaps uint64
	script   *run // or nil
	empty    *byte
	zero     byte // '0'

	unblocked uint64 // the signals that process 1 starts with blocked: none

	outer, inner cloneArgs

	// Where memory is shared:
	middle, first uintptr  // the functions of the children
	ours          uint32   // not 0 as long as process 1 has this memory
	stacks        [2]stack // of the first child, and of process 1
}

// stage names the step of a child that failed.
type stage int

const (
	stageNone stage = iota
	stageCgroups
	stageMounts
	stageGroupNS
	stageUserNS
	stageJoin
	stageIDs
	stageGroups
	stageNetNS
	stageUnshare
	stageClone
	stageScript
	stageFiles
	stageCaps
	stageSignals
	stageExec
)

func (s stage) String() string {
	return [...]string{
		"", "join its v1 cgroups", "join the mounts to begin with", "join the cgroup namespace", "join the user namespace", "join its namespaces", "become its root", "drop groups", "join the network namespace", "unshare namespaces",
		"clone process 1", "run its script", "place descriptors", "drop capabilities", "unblock signals", "execute the agent",
	}[s]
}

// becomeRoot takes on the ids of the root of the user namespace that was joined.
//
//go:norace
//go:nosplit
//go:nocheckptr
func becomeRoot() (failed stage, errno uintptr) {
	// gid first: after setuid the child may not change it.
	if _, _, e := syscall.RawSyscall(unix.SYS_SETRESGID, 0, 0, 0); e != 0 {
		return stageIDs, uintptr(e)
	}
	if _, _, e := syscall.RawSyscall(unix.SYS_SETRESUID, 0, 0, 0); e != 0 {
		return stageIDs, uintptr(e)
	}
	if _, _, e := syscall.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
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
		if _, _, e := syscall.RawSyscall(unix.SYS_WRITE, p.groups[i], uintptr(unsafe.Pointer(&p.zero)), 1); e != 0 {
			return p.fail(stageCgroups, uintptr(e))
		}
	}
	if p.mounts != noFile {
		if _, _, e := syscall.RawSyscall(unix.SYS_SETNS, p.mounts, unix.CLONE_NEWNS, 0); e != 0 {
			return p.fail(stageMounts, uintptr(e))
		}
	}
	if p.groupns != noFile { // before the rights on the host are gone
		if _, _, e := syscall.RawSyscall(unix.SYS_SETNS, p.groupns, unix.CLONE_NEWCGROUP, 0); e != 0 {
			return p.fail(stageGroupNS, uintptr(e))
		}
	}
	if _, _, e := syscall.RawSyscall(unix.SYS_SETNS, p.userns, unix.CLONE_NEWUSER, 0); e != 0 {
		return p.fail(stageUserNS, uintptr(e))
	}
	if s, e := becomeRoot(); s != stageNone {
		return p.fail(s, e)
	}
	if _, _, e := syscall.RawSyscall(unix.SYS_SETNS, p.netns, unix.CLONE_NEWNET, 0); e != 0 {
		return p.fail(stageNetNS, uintptr(e))
	}
	own := uintptr(Namespaces &^ unix.CLONE_NEWNET)
	if p.groupns != noFile {
		own &^= unix.CLONE_NEWCGROUP
	}
	if _, _, e := syscall.RawSyscall(unix.SYS_UNSHARE, own, 0, 0); e != 0 {
		return p.fail(stageUnshare, uintptr(e))
	}
	// A process starts with its parent's timer slack. It cannot fail.
	syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, TimerSlack, 0, 0, 0, 0)
	return true
}

// exec runs in process 1 and returns only when it failed.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (p *plan) exec() {
	if p.script != nil {
		if p.script.run(); !p.script.done {
			p.fail(stageScript, uintptr(p.script.errno))
			return
		}
	}
	p.report.ready = 1
	if _, _, e := syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0); e != 0 {
		p.fail(stageFiles, uintptr(e))
		return
	}
	// The table is still the server's. Only its beginning is copied: what all sandboxes have
	// open is thousands, and the last to let go of an overlay waits for the disk.
	if _, _, e := syscall.RawSyscall(unix.SYS_CLOSE_RANGE, p.above, ^uintptr(0)>>32, unix.CLOSE_RANGE_UNSHARE); e != 0 {
		p.fail(stageFiles, uintptr(e))
		return
	}
	for i := 0; i < p.nfiles; i++ {
		if _, _, e := syscall.RawSyscall(unix.SYS_DUP3, p.files[i], uintptr(i), 0); e != 0 {
			p.fail(stageFiles, uintptr(e))
			return
		}
	}
	// Whatever the server, or its parent, had open without close-on-exec must
	// not reach the sandbox.
	if _, _, e := syscall.RawSyscall(unix.SYS_CLOSE_RANGE, uintptr(p.nfiles), ^uintptr(0)>>32, unix.CLOSE_RANGE_CLOEXEC); e != 0 {
		p.fail(stageFiles, uintptr(e))
		return
	}
	for c := uintptr(0); c < 64; c++ {
		if p.keepCaps&(1<<c) != 0 {
			continue
		}
		if _, _, e := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0, 0); e != 0 {
			if e == unix.EINVAL { // past the last capability of this kernel
				break
			}
			p.fail(stageCaps, uintptr(e))
			return
		}
	}
	// Handlers went with CLONE_CLEAR_SIGHAND; the mask is still that of a fork in Go.
	if _, _, e := syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, sigSetmask, uintptr(unsafe.Pointer(&p.unblocked)), 0, sigsetSize, 0, 0); e != 0 {
		p.fail(stageSignals, uintptr(e))
		return
	}
	_, _, e := syscall.RawSyscall6(unix.SYS_EXECVEAT, p.program, uintptr(unsafe.Pointer(p.empty)),
		uintptr(unsafe.Pointer(unsafe.SliceData(p.argv))), uintptr(unsafe.Pointer(unsafe.SliceData(p.envp))), unix.AT_EMPTY_PATH, 0)
	p.fail(stageExec, uintptr(e))
}

//go:norace
//go:nosplit
func (p *plan) fail(s stage, errno uintptr) bool {
	p.report.failed, p.report.errno = s, unix.Errno(errno)
	return false
}

//go:norace
//go:nosplit
func exit(code uintptr) {
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, code, 0, 0)
	}
}
