// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// childStatus reads si_status, which x/sys does not name: struct siginfo has
// si_signo, si_errno, si_code, padding, then of a child si_pid, si_uid,
// si_status, each four bytes (include/uapi/asm-generic/siginfo.h).
func childStatus(si *unix.Siginfo) int32 {
	return *(*int32)(unsafe.Add(unsafe.Pointer(si), 24))
}
