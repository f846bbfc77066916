// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import "unsafe"

// Supported reports why no process can be started here, or nil.
func Supported() error { return nil }

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
