// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"encoding/hex"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The structures below have the layout of include/uapi/linux/btrfs.h, and the
// request numbers are that header's macros worked out; both are the same on
// all 64-bit machines whose _IOC direction bits are the generic ones (amd64,
// arm64, riscv64). A test holds the sizes.
const (
	btrfsSubvolCreateV2 = 0x50009418 // BTRFS_IOC_SUBVOL_CREATE_V2
	btrfsSnapDestroy    = 0x5000940f // BTRFS_IOC_SNAP_DESTROY
	btrfsQuotaCtl       = 0xc0109428 // BTRFS_IOC_QUOTA_CTL
	btrfsQgroupLimit    = 0x8030942b // BTRFS_IOC_QGROUP_LIMIT
	btrfsFSInfo         = 0x8400941f // BTRFS_IOC_FS_INFO
	btrfsInoLookup      = 0xd0009412 // BTRFS_IOC_INO_LOOKUP

	quotaEnableSimple = 4 // BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA, Linux 6.7

	subvolQgroupInherit = 1 << 2 // BTRFS_SUBVOL_QGROUP_INHERIT
	inheritSetLimits    = 1 << 0 // BTRFS_QGROUP_INHERIT_SET_LIMITS
	limitMaxReferenced  = 1 << 0 // BTRFS_QGROUP_LIMIT_MAX_RFER
	limitNone           = ^uint64(0)

	// subvolInode is BTRFS_FIRST_FREE_OBJECTID, the inode number of the top of
	// every subvolume and of nothing else.
	subvolInode = 256
)

// struct btrfs_qgroup_limit
type qgroupLimit struct {
	flags, maxReferenced, maxExclusive, reservedReferenced, reservedExclusive uint64
}

// struct btrfs_qgroup_inherit, without a list of parent groups: flags, num_qgroups,
// num_ref_copies, num_excl_copies, lim. What is not named stays zero.
type qgroupInherit struct {
	flags uint64
	_     [3]uint64

	limit qgroupLimit
}

// struct btrfs_ioctl_qgroup_limit_args
type qgroupLimitArgs struct {
	group uint64 // 0 is the subvolume that the descriptor is in
	limit qgroupLimit
}

// struct btrfs_ioctl_vol_args
type volArgs struct {
	fd   int64
	name [4088]byte
}

// struct btrfs_ioctl_vol_args_v2
type volArgsV2 struct {
	fd             int64
	transid, flags uint64
	size           uint64
	inherit        *qgroupInherit
	_              [2]uint64
	name           [4040]byte
}

// struct btrfs_ioctl_quota_ctl_args
type quotaCtlArgs struct{ cmd, status uint64 }

// struct btrfs_ioctl_fs_info_args, of which only the fsid is read
type fsInfoArgs struct {
	_    [2]uint64
	fsid [16]byte
	_    [992]byte
}

// struct btrfs_ioctl_ino_lookup_args
type inoLookupArgs struct {
	tree, object uint64
	_            [4080]byte
}

func ioctl(fd int, request uintptr, arg unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
			continue
		}
		return errno
	}
}

// createSubvolume makes a subvolume, and its limit with it if limit > 0: the
// two are one transaction, so there is no moment without the limit and no
// second call to pay for.
func createSubvolume(dir int, name string, limit int64) error {
	args := volArgsV2{}
	copy(args.name[:len(args.name)-1], name)
	inherit := &qgroupInherit{}
	if limit > 0 {
		inherit.flags = inheritSetLimits
		inherit.limit = qgroupLimit{flags: limitMaxReferenced, maxReferenced: uint64(limit)}
		args.flags = subvolQgroupInherit
		args.size = uint64(unsafe.Sizeof(*inherit))
		args.inherit = inherit
	}
	err := ioctl(dir, btrfsSubvolCreateV2, unsafe.Pointer(&args))
	runtime.KeepAlive(inherit)
	return err
}

// destroySubvolume unlinks a subvolume with all that is in it; the kernel
// frees its blocks afterwards, by itself. It is not quick where many of its
// files are cached (about 6 µs each), and holds the lock of dir as long.
func destroySubvolume(dir int, name string) error {
	args := volArgs{}
	copy(args.name[:len(args.name)-1], name)
	return ioctl(dir, btrfsSnapDestroy, unsafe.Pointer(&args))
}

// setLimit changes the limit of the subvolume that fd is in; 0 takes it away.
func setLimit(fd int, limit int64) error {
	args := qgroupLimitArgs{limit: qgroupLimit{flags: limitMaxReferenced, maxReferenced: limitNone}}
	if limit > 0 {
		args.limit.maxReferenced = uint64(limit)
	}
	return ioctl(fd, btrfsQgroupLimit, unsafe.Pointer(&args))
}

// quotasOn asks whether the file system keeps quotas, by setting the limit of
// a group that cannot exist: ENOENT where groups are kept, ENOTCONN where not.
func quotasOn(fd int) error {
	args := qgroupLimitArgs{group: 1<<48 - 1, limit: qgroupLimit{flags: limitMaxReferenced, maxReferenced: limitNone}}
	if err := ioctl(fd, btrfsQgroupLimit, unsafe.Pointer(&args)); err != nil && err != unix.ENOENT {
		return err
	}
	return nil
}

func enableSimpleQuotas(fd int) error {
	args := quotaCtlArgs{cmd: quotaEnableSimple}
	return ioctl(fd, btrfsQuotaCtl, unsafe.Pointer(&args))
}

// fsid gives the file system's id as /sys/fs/btrfs spells it.
func fsid(fd int) (string, error) {
	args := fsInfoArgs{}
	if err := ioctl(fd, btrfsFSInfo, unsafe.Pointer(&args)); err != nil {
		return "", err
	}
	h := hex.EncodeToString(args.fsid[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], nil
}

// subvolumeID gives the id of the subvolume that fd is in.
func subvolumeID(fd int) (uint64, error) {
	args := inoLookupArgs{object: subvolInode}
	if err := ioctl(fd, btrfsInoLookup, unsafe.Pointer(&args)); err != nil {
		return 0, err
	}
	return args.tree, nil
}

func isBtrfs(fd int) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return false, err
	}
	return uint32(st.Type) == unix.BTRFS_SUPER_MAGIC, nil
}
