// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data, on processors whose numbers begin with the lowest byte.
const (
	dataNumber   = 0
	dataArch     = 4
	dataFamily   = 16 // socket's first argument
	dataProtocol = 32 // and its third
)

// What the filter answers.
const (
	retKill  = unix.SECCOMP_RET_KILL_PROCESS
	retAllow = unix.SECCOMP_RET_ALLOW
	retErrno = unix.SECCOMP_RET_ERRNO
)

// firstX32 is where the numbers of amd64's other convention begin.
const firstX32 = 1 << 30

// limitSockets leaves all threads, and all that they start, the sockets that programs use: of unix, of
// TCP, UDP and pings, and for lists of routes and sockets. Others (AF_VSOCK, to the machine's hypervisor)
// go past the container's network. With it go the other ways to a socket: 32-bit programs, which ask for
// one by another call, and io_uring, whose operations no filter sees.
func limitSockets() error {
	arch, err := auditArch()
	if err != nil {
		return fmt.Errorf("limit sockets: %w", err)
	}
	f := socketFilter(arch)
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: unsafe.SliceData(f)} //nolint:gosec // it has some 30
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("limit sockets: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("limit sockets: thread %d has another filter", thread)
	}
	return nil
}

// auditArch is the processor as filters see it.
func auditArch() (uint32, error) {
	arch := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if arch == 0 {
		return 0, fmt.Errorf("there is no filter for %s", runtime.GOARCH)
	}
	return arch, nil
}

func socketFilter(arch uint32) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	answer := func(with uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with} }
	// when skips what follows it, so many instructions, unless the comparison holds.
	when := func(op uint16, k uint32, skip int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | op, K: k, Jf: uint8(skip)} //nolint:gosec // within a list of some 30
	}
	// among answers allow where what is loaded is one of the values, else otherwise.
	among := func(otherwise uint32, values ...uint32) (out []unix.SockFilter) {
		for _, v := range values {
			out = append(out, when(unix.BPF_JEQ, v, 1), answer(retAllow))
		}
		return append(out, answer(otherwise))
	}
	refused, none := retErrno|uint32(unix.EPERM), retErrno|uint32(unix.EPROTONOSUPPORT)
	internet := append([]unix.SockFilter{load(dataProtocol)},
		among(refused, unix.IPPROTO_IP, unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6, unix.IPPROTO_MPTCP)...)
	netlink := append([]unix.SockFilter{load(dataProtocol)}, among(none, unix.NETLINK_ROUTE, unix.NETLINK_SOCK_DIAG, unix.NETLINK_KOBJECT_UEVENT)...)

	out := []unix.SockFilter{
		load(dataArch), when(unix.BPF_JEQ, arch, 1), {Code: unix.BPF_JMP | unix.BPF_JA, K: 1}, answer(retKill),
		load(dataNumber),
		when(unix.BPF_JGE, firstX32, 1), answer(retErrno | uint32(unix.ENOSYS)),
	}
	for _, n := range []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER} {
		out = append(out, when(unix.BPF_JEQ, n, 1), answer(refused))
	}
	out = append(out,
		when(unix.BPF_JEQ, unix.SYS_SOCKET, 1), unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: 1}, answer(retAllow),
		load(dataFamily),
		when(unix.BPF_JEQ, unix.AF_UNIX, 1), answer(retAllow))
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		out = append(append(out, when(unix.BPF_JEQ, family, len(internet))), internet...)
	}
	out = append(append(out, when(unix.BPF_JEQ, unix.AF_NETLINK, len(netlink))), netlink...)
	return append(out, answer(refused))
}
