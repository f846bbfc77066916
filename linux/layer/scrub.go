// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// scrubArgs is the kernel's struct btrfs_ioctl_scrub_args.
type scrubArgs struct {
	device, start, end, flags uint64
	progress                  struct {
		_             [4]uint64 // extents and bytes that were read
		read, sum     uint64    // errors
		verify        uint64
		_             [2]uint64
		super         uint64
		_             uint64
		uncorrectable uint64
		_             [3]uint64
	}
	_ [1024 - 4*8 - 15*8]byte
}

const (
	ioctlScrub       = 0xc400941b // BTRFS_IOC_SCRUB
	ioctlScrubCancel = 0x941c     // BTRFS_IOC_SCRUB_CANCEL
	scrubReadOnly    = 1
	onlyDevice       = 1 // the number of a store's one device
)

// scrub reads all that is in use of the file system that root is of against its
// checksums, changes nothing, and returns how many blocks are wrong.
func scrub(ctx context.Context, root int) (errs uint64, err error) {
	defer context.AfterFunc(ctx, func() { _, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(root), ioctlScrubCancel, 0) })()
	args := scrubArgs{device: onlyDevice, end: ^uint64(0), flags: scrubReadOnly}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(root), ioctlScrub, uintptr(unsafe.Pointer(&args)))
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if errno != 0 {
		return 0, fmt.Errorf("scrub: %w", errno)
	}
	p := args.progress
	return max(p.read+p.sum+p.verify+p.super, p.uncorrectable), nil
}
