// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// report is what children tell the server: they write it, and it is in memory that they
// share with the server whatever else is. It has no pointers.
type report struct {
	pid    int32  // of process 1
	ready  uint32 // not 0 once process 1 has run its script
	failed stage
	errno  unix.Errno
	script played
}

// played is what came of a script.
type played struct {
	results [maxCalls]uintptr
	reached int // how many calls were made or left out
	failed  int // of calls; -1: none
	errno   unix.Errno
	done    bool
}

// newReport makes one for children of m, which the caller frees.
func newReport(m Method) (*report, error) {
	r := new(report)
	if m.copies() {
		p, err := unix.MmapPtr(-1, 0, nil, unsafe.Sizeof(report{}), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
		if err != nil {
			return nil, fmt.Errorf("share memory with children: mmap: %w", err)
		}
		r = (*report)(p)
	}
	r.script.failed = -1
	return r, nil
}

// free lets go of a report of m's that no child writes any more.
func (r *report) free(m Method) {
	if m.copies() {
		_ = unix.MunmapPtr(unsafe.Pointer(r), unsafe.Sizeof(report{}))
	}
}
