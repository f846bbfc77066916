// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

// cloneArgs is the kernel's struct clone_args, see clone3(2): flags, pidfd,
// child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
// set_tid_size, cgroup. What is not named stays zero.
type cloneArgs struct {
	flags      uint64
	_          uint64
	childTID   uint64
	parentTID  uint64
	exitSignal uint64
	stack      uint64
	stackSize  uint64
	_          [3]uint64
	cgroup     uint64
}

// stack is a child's own, in memory of ours that stays where it is as long as the child
// lives. The functions that run there check for no more: Go's linker lets a chain of such
// have 800 bytes.
type stack [4096]byte
