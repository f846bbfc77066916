// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package fork starts a command's process. It knows nothing of what a command
// is, who asked for it, or what becomes of it.
//
// # Why not package syscall
//
// syscall.ForkExec resets in each child every signal that Go has a handler for,
// with 64 system calls, makes a pipe to hear of an execve that failed, and can
// name the child's directory by a path only. Here the kernel resets the handlers
// (CLONE_CLEAR_SIGHAND), the child says in shared memory what failed, and the
// directory is a descriptor. docs/design.md says what that saves.
//
// Where the kernel, or a filter around us, refuses clone3 with these flags,
// syscall.ForkExec does the work.
//
// # Keepers
//
// A keeper is a process between us and a command, which adopts what the command leaves behind. It
// is made like the command, and stays: it shares our memory and descriptors, so it takes
// neither a copy of our page tables nor a program of its own, but 16 KiB of stack. To the kernel it
// is a process; to Go it does not exist.
//
// # The rules of code between clone and execve
//
// The child shares our memory and runs on the stack of the goroutine that cloned
// it, which stands still meanwhile. It must not allocate, grow the stack, lock,
// be preempted, or call anything that does. So those functions are nosplit and
// norace, take what was prepared before, and make raw system calls only: by package
// syscall, since package unix goes through a wrapper that the race detector instruments.
//
// The assembler must be in the package of its caller: between two packages the
// compiler puts a frame of its own, whose return address the child would overwrite.
package fork
