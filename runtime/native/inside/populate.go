// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// populate maps the program's code at once, instead of page by page as it is first
// run: that costs a hundred faults, of a microsecond and more each, in the middle of
// a start and of the first command. The pages are shared by all agents. It is for a
// time when the process waits anyway; where it fails nothing is lost.
func populate() {
	aux, err := unix.Auxv()
	if err != nil {
		return
	}
	var headers, count uintptr
	for _, a := range aux {
		switch a[0] {
		case atPHDR:
			headers = a[1]
		case atPHNUM:
			count = a[1]
		}
	}
	if headers == 0 || count > 64 {
		return
	}
	page := uintptr(os.Getpagesize())
	for _, h := range unsafe.Slice((*programHeader)(atAddress(headers)), count) {
		if h.kind == ptLoad && h.flags&pfExecute != 0 {
			start := uintptr(h.address) &^ (page - 1)
			_, _, _ = unix.RawSyscall(unix.SYS_MADVISE, start, uintptr(h.address+h.size)-start, unix.MADV_POPULATE_READ)
		}
	}
}

// programHeader is Elf64_Phdr, see elf(5). The agent is linked to fixed addresses.
type programHeader struct {
	kind, flags   uint32
	_             uint64 // offset in the file
	address       uint64
	_, _, size, _ uint64 // physical address, size in the file; in memory; alignment
}

const (
	ptLoad    = 1
	pfExecute = 1
)

// Keys of the auxiliary vector, see getauxval(3).
const (
	atPHDR  = 3
	atPHNUM = 5
)

// atAddress is what the kernel mapped at an address that it told.
func atAddress(a uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }
