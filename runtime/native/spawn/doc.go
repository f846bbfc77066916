// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package spawn starts a sandbox's first process in namespaces of its own, by
// raw system calls from pure Go.
//
// # Why not os/exec
//
// os/exec cannot join a user namespace that was made before, and for a new one
// it gives up vfork: the child is then a copy of the server's page tables,
// which takes 15 ms with a heap of 200 MB. Re-executing a helper costs a
// millisecond. Here a child is cloned with CLONE_VM and CLONE_VFORK whatever it
// unshares, and between clone and execve it makes system calls and nothing else.
//
// # How
//
// Two clones, since a process never changes its own pid namespace. The first
// child joins the user namespace, becomes its root, unshares the rest, and
// clones the second with CLONE_PARENT; the second is process 1 of the new pid
// namespace and a direct child of the server, which reaps both.
//
// # Tapes
//
// What has to be done in a sandbox's namespaces is done by such a child too: it
// makes the system calls that a [Tape] lists, one after the other, and ends. That is
// quicker than process 1, which has Go's runtime to start meanwhile, and it needs
// rights that process 1 then never has. What only a process of the pid namespace can
// make, process 1 makes by a tape of its own, before it executes its program.
//
// # The rules of code between clone and execve
//
// The child shares the server's memory and runs on the stack of the goroutine
// that cloned it, which stands still meanwhile. It must not allocate, grow the
// stack, lock, be preempted, or call anything that does. So those functions are
// nosplit and norace, take what was prepared before, and make raw system calls
// only. The runtime hooks that package syscall uses for its own forks block
// signals around it, and CLONE_CLEAR_SIGHAND takes the handlers away.
package spawn
