// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	_ "unsafe" // for go:linkname
)

// cloneArgs is the kernel's struct clone_args, see clone3(2): flags, pidfd,
// child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
// set_tid_size, cgroup. What is not named stays zero.
type cloneArgs struct {
	flags      uint64
	_          [3]uint64
	exitSignal uint64
	_          [5]uint64
	cgroup     uint64
}

//go:noescape
func cloneVfork(args *cloneArgs, size uintptr) (r, errno uintptr)

//go:noescape
func cloneParked(args *cloneArgs, size, self uintptr) (r, errno uintptr)

// The hooks of the runtime around a fork, as package syscall has them: block
// all signals, and put the mask back. A child needs no hook: it has no handlers
// (CLONE_CLEAR_SIGHAND, one flag instead of 64 calls) and never comes back.

//go:linkname runtimeBeforeFork syscall.runtime_BeforeFork
func runtimeBeforeFork()

//go:linkname runtimeAfterFork syscall.runtime_AfterFork
func runtimeAfterFork()
