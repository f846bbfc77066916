// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package spawn

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Supported reports why no process can be started here, or nil: clone3 with shared memory
// needs assembler, which is written for amd64 alone. Everything else of this package fails
// with [unix.ENOSYS] then.
func Supported() error {
	return fmt.Errorf("the first process of a sandbox is cloned by assembler that is written for amd64; this is %s", runtime.GOARCH)
}

func cloneBeside(*cloneArgs, uintptr, uintptr, unsafe.Pointer) (r, errno uintptr) {
	return 0, uintptr(unix.ENOSYS)
}

func cloneParked(*cloneArgs, uintptr, uintptr) (r, errno uintptr) { return 0, uintptr(unix.ENOSYS) }

func runtimeBeforeFork() {}
func runtimeAfterFork()  {}
