// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// namespaces are the flags of clone(2) that make one.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// dataFlags is where clone's first argument is in struct seccomp_data: the lower half, which is all that the call looks at.
const dataFlags = 16

// ofMounters are the calls that filters of containers allow where the container may have CAP_SYS_ADMIN, and refuse else: by a user
// namespace of his own anybody could have that again.
func ofMounters() []uint32 {
	return []uint32{
		unix.SYS_BPF, unix.SYS_FANOTIFY_INIT, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSOPEN, unix.SYS_FSPICK, unix.SYS_MOUNT, unix.SYS_MOUNT_SETATTR,
		unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, openTreeAttr, unix.SYS_PERF_EVENT_OPEN, unix.SYS_PIVOT_ROOT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SETDOMAINNAME,
		unix.SYS_SETHOSTNAME, unix.SYS_SETNS, unix.SYS_SYSLOG, unix.SYS_UMOUNT2, unix.SYS_UNSHARE, unix.SYS_CHROOT, unix.SYS_OPEN_BY_HANDLE_AT,
	}
}

// openTreeAttr is open_tree_attr(2), on all processors.
const openTreeAttr = 467

// refuseMounts keeps the calling thread, and what it becomes and starts, from these calls for good.
func refuseMounts() error {
	arch, err := auditArch()
	if err != nil {
		return fmt.Errorf("refuse mounts: %w", err)
	}
	f := mountFilter(arch)
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: unsafe.SliceData(f)} //nolint:gosec // it has some 60
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return fmt.Errorf("refuse mounts: %w", errno)
	}
	return nil
}

func mountFilter(arch uint32) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	answer := func(with uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with} }
	when := func(op uint16, k uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | op, K: k, Jf: skip}
	}
	refused := retErrno | uint32(unix.EPERM)
	out := []unix.SockFilter{
		load(dataArch), when(unix.BPF_JEQ, arch, 1), {Code: unix.BPF_JMP | unix.BPF_JA, K: 1}, answer(retKill),
		load(dataNumber),
		when(unix.BPF_JGE, firstX32, 1), answer(retErrno | uint32(unix.ENOSYS)),
		// Its flags lie behind a pointer: programs take clone where there is no clone3.
		when(unix.BPF_JEQ, unix.SYS_CLONE3, 1), answer(retErrno | uint32(unix.ENOSYS)),
	}
	for _, n := range ofMounters() {
		out = append(out, when(unix.BPF_JEQ, n, 1), answer(refused))
	}
	return append(out, when(unix.BPF_JEQ, unix.SYS_CLONE, 3), load(dataFlags), when(unix.BPF_JSET, namespaces, 1), answer(refused), answer(retAllow))
}
