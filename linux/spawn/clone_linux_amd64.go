// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// shares says whether children can share the server's memory on this processor.
const shares = true

// What it gets is used after it has returned, so that escapes: it is on the heap, where
// nothing moves.
func cloneBeside(args *cloneArgs, size, entry uintptr, p unsafe.Pointer) (r, errno uintptr)

//go:noescape
func cloneParked(args *cloneArgs, size, self uintptr) (r, errno uintptr)

// The hooks of the runtime around a fork, as package syscall has them: block
// all signals, and put the mask back. A child needs no hook: it has no handlers
// (CLONE_CLEAR_SIGHAND, one flag instead of 64 calls) and never comes back.

//go:linkname runtimeBeforeFork syscall.runtime_BeforeFork
func runtimeBeforeFork()

//go:linkname runtimeAfterFork syscall.runtime_AfterFork
func runtimeAfterFork()

// entry is where the code of a function begins, which is no closure.
func entry(f func(unsafe.Pointer)) uintptr { return **(**uintptr)(unsafe.Pointer(&f)) }

// onStack has a child begin at the upper end of s, in the server's memory.
func (a *cloneArgs) onStack(s *stack) {
	a.flags |= unix.CLONE_VM
	a.stack, a.stackSize = uint64(uintptr(unsafe.Pointer(s))), uint64(len(s))
}

// begin makes the first child, and does not wait for it: the server does not sleep in vfork(2). The
// kernel would wake who does behind the child, on its processor, though another one be idle.
func (p *plan) begin() (pid int, errno unix.Errno) {
	if p.method.copies() {
		return p.beginCopy()
	}
	p.outer.onStack(&p.stacks[0])
	p.inner.onStack(&p.stacks[1])
	p.inner.flags |= unix.CLONE_CHILD_CLEARTID
	p.inner.childTID = uint64(uintptr(unsafe.Pointer(&p.ours)))
	p.ours = 1
	p.middle, p.first = entry(middle), entry(first)
	return beside(&p.outer, p.middle, unsafe.Pointer(p))
}

// begin makes the child. Nobody sleeps in vfork(2) meanwhile, see [plan.begin].
func (v *visit) begin() (pid int, errno unix.Errno) {
	if v.method.copies() {
		return v.beginCopy()
	}
	v.args.onStack(&v.stack)
	return beside(&v.args, entry(visitor), unsafe.Pointer(v))
}

//go:norace
//go:noinline
//go:nocheckptr
func beside(args *cloneArgs, entry uintptr, p unsafe.Pointer) (pid int, errno unix.Errno) {
	runtimeBeforeFork()
	r, e := cloneBeside(args, unsafe.Sizeof(*args), entry, p)
	runtimeAfterFork()
	return int(r), unix.Errno(e)
}

// middle is the first child, which makes process 1 where it has gone.
//
//go:norace
//go:nosplit
//go:nocheckptr
func middle(of unsafe.Pointer) {
	p := (*plan)(of)
	if !p.enter() {
		exit(1)
	}
	if _, e := cloneBeside(&p.inner, unsafe.Sizeof(p.inner), p.first, of); e != 0 {
		p.fail(stageClone, e)
		exit(1)
	}
	exit(0)
}

// first is process 1, on its way to its program.
//
//go:norace
//go:nosplit
//go:nocheckptr
func first(of unsafe.Pointer) {
	(*plan)(of).exec()
	exit(1)
}

// visitor is the child of a run: it joins the namespaces and runs the script.
//
//go:norace
//go:nosplit
//go:nocheckptr
func visitor(of unsafe.Pointer) {
	v := (*visit)(of)
	if v.enter() {
		v.run.run()
	}
	exit(0)
}

// park makes a child that sleeps until it is killed, or the thread that calls it ends. self is
// our pid.
func park(args *cloneArgs, self uintptr, m Method) (pid int, errno unix.Errno) {
	if m.copies() {
		return parkCopy(args, self)
	}
	args.flags |= unix.CLONE_VM
	return parkBeside(args, self)
}

//go:norace
//go:noinline
func parkBeside(args *cloneArgs, self uintptr) (pid int, errno unix.Errno) {
	runtimeBeforeFork()
	r, e := cloneParked(args, unsafe.Sizeof(*args), self)
	runtimeAfterFork()
	return int(r), unix.Errno(e)
}
