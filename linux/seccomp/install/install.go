// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package install gives a compiled seccomp filter to the kernel, and answers the calls that
// one hands over.
//
// It is apart from package seccomp because the agent imports it: it must not
// know what a filter says or how it is made, and must stay on the standard
// library and x/sys.
package install

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	instructionSize = 8
	maxInstructions = 4096 // the kernel's BPF_MAXINSNS
)

// Install puts the program, an array of the kernel's struct sock_filter as
// seccomp.Filter makes it, on the calling OS thread, for good: what the thread
// forks and executes inherits it, filters stack, none can be taken off. It may
// be called again; each program costs something on every call from then on.
//
// The caller holds runtime.LockOSThread and never unlocks it, so that the
// thread ends with its goroutine. Other threads are not touched: the agent
// installs this on the threads that fork commands, and must itself go on
// calling what commands may not. The thread has no_new_privs set, or
// CAP_SYS_ADMIN in its user namespace; else the kernel answers EACCES.
//
// An error means that nothing was installed: a program of the wrong length, or
// the kernel's errno, to be had with errors.Is.
func Install(prog []byte) error {
	_, err := install(prog, 0)
	return err
}

func install(prog []byte, flags uintptr) (fd int, err error) {
	n := len(prog) / instructionSize
	if n == 0 || n > maxInstructions || len(prog)%instructionSize != 0 {
		return 0, fmt.Errorf("seccomp: a program of %d bytes: want 1 to %d instructions of %d bytes",
			len(prog), maxInstructions, instructionSize)
	}
	// The kernel copies the array and does not mind its alignment.
	fprog := unix.SockFprog{Len: uint16(n), Filter: (*unix.SockFilter)(unsafe.Pointer(unsafe.SliceData(prog)))}
	// Never SECCOMP_FILTER_FLAG_TSYNC: that would put the filter on every thread of the process.
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return 0, fmt.Errorf("seccomp: install a filter of %d instructions: %w", n, errno)
	}
	return int(r), nil
}
