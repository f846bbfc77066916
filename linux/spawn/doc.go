// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package spawn starts a sandbox's first process in namespaces of its own, by
// raw system calls from pure Go.
//
// # Why not os/exec
//
// os/exec cannot join a user namespace that was made before, and for a new one
// it gives up vfork: the child is then a copy of the server's page tables,
// which takes 15 ms with a heap of 200 MB. A Go program that is executed as a helper cannot
// join one either: it has several threads, and the kernel lets none of them. By [Fastest]
// a child is cloned with CLONE_VM whatever it unshares, and between
// clone and execve it makes system calls and nothing else.
//
// Nor does anybody sleep in vfork(2) meanwhile. Who does holds one of Go's processors, and is
// woken behind the child, on the child's own processor: while process 1's runtime starts
// there, for a millisecond, though another processor be idle.
//
// # How
//
// Two clones, since a process never changes its own pid namespace. The first
// child joins the user namespace, becomes its root, unshares the rest, and
// clones the second with CLONE_PARENT; the second is process 1 of the new pid
// namespace and a direct child of the server, which reaps both.
//
// # Scripts
//
// What has to be done in a sandbox's namespaces is done by such a child too: it
// makes the system calls that a [Script] lists, one after the other, and ends. That is
// quicker than process 1, which has Go's runtime to start meanwhile, and it needs
// rights that process 1 then never has. What only a process of the pid namespace can
// make, process 1 makes by a script of its own, before it executes its program.
//
// # Two methods
//
// [Fastest] takes assembler, which is written for amd64, and two functions of Go's runtime that
// package syscall does not export. [Portable] takes neither: it forks, so that the child has a
// copy of the server's memory and of the stack of the function that made it. It is what there is
// on other processors, and what is left on this one should a release of Go no longer allow the
// other. Both make the same children, of the same code, and one suite tests them. What differs:
//
//   - The server learns by memory that is mapped shared what became of a child, and sees nothing
//     else that it wrote.
//   - The first child waits in vfork(2) until process 1 has its program, and ends then. By Fastest it
//     ends at once, and the kernel clears a word of the server's when process 1 leaves its memory.
//   - It takes longer the more memory the server has, and the page tables of process 1 until it has its
//     program are counted to the sandbox.
//
// # The rules of code between clone and execve
//
// By Fastest the child shares the server's memory, and runs in it beside the server, on a stack of its
// own. What it works from is on the heap, where nothing moves, and is kept by who waits for
// it; it writes no pointers. By Portable it is alone in a copy, in which no other thread is there to
// release a lock, or to answer the collector of garbage. It must not allocate, grow the stack, lock, be preempted, or call
// anything that does. So those functions are nosplit and norace, and make raw system calls
// only, by package syscall: that of x/sys/unix goes through a wrapper that the race detector
// sees, and would take for the thread that cloned. Signals are blocked around the clone, by Fastest with the hooks that package
// syscall uses for its own forks, and CLONE_CLEAR_SIGHAND takes the handlers away.
package spawn
