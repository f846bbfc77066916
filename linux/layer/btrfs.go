// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"encoding/binary"
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
	btrfsSnapCreateV2   = 0x50009417 // BTRFS_IOC_SNAP_CREATE_V2
	btrfsSubvolCreateV2 = 0x50009418 // BTRFS_IOC_SUBVOL_CREATE_V2
	btrfsSync           = 0x9408     // BTRFS_IOC_SYNC
	btrfsStartSync      = 0x80089418 // BTRFS_IOC_START_SYNC
	btrfsWaitSync       = 0x40089416 // BTRFS_IOC_WAIT_SYNC
	btrfsSnapDestroy    = 0x5000940f // BTRFS_IOC_SNAP_DESTROY
	btrfsQuotaCtl       = 0xc0109428 // BTRFS_IOC_QUOTA_CTL
	btrfsQgroupAssign   = 0x40189429 // BTRFS_IOC_QGROUP_ASSIGN
	btrfsQgroupCreate   = 0x4010942a // BTRFS_IOC_QGROUP_CREATE
	btrfsQgroupLimit    = 0x8030942b // BTRFS_IOC_QGROUP_LIMIT
	btrfsFSInfo         = 0x8400941f // BTRFS_IOC_FS_INFO
	btrfsTreeSearch     = 0xd0009411 // BTRFS_IOC_TREE_SEARCH
	btrfsInoLookup      = 0xd0009412 // BTRFS_IOC_INO_LOOKUP
	btrfsSubvolInfo     = 0x81f8943c // BTRFS_IOC_GET_SUBVOL_INFO

	quotaEnableSimple = 4 // BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA, Linux 6.7

	subvolQgroupInherit = 1 << 2 // BTRFS_SUBVOL_QGROUP_INHERIT
	inheritSetLimits    = 1 << 0 // BTRFS_QGROUP_INHERIT_SET_LIMITS
	limitMaxReferenced  = 1 << 0 // BTRFS_QGROUP_LIMIT_MAX_RFER
	limitReserved       = 1 << 2 // BTRFS_QGROUP_LIMIT_RSV_RFER
	limitNone           = ^uint64(0)

	// subvolInode is BTRFS_FIRST_FREE_OBJECTID, the inode number of the top of
	// every subvolume and of nothing else.
	subvolInode = 256

	topVolume = 5 // BTRFS_FS_TREE_OBJECTID, the subvolume that all others are in

	chunkTree    = 3   // BTRFS_CHUNK_TREE_OBJECTID
	chunkObject  = 256 // BTRFS_FIRST_CHUNK_TREE_OBJECTID
	chunkItemKey = 228 // BTRFS_CHUNK_ITEM_KEY
	chunkData    = 1   // BTRFS_BLOCK_GROUP_DATA
	chunkType    = 24  // where type is in struct btrfs_chunk; its length is at 0
	chunkOffset  = 56  // where the offset of its first stripe is

	rootTree     = 1   // BTRFS_ROOT_TREE_OBJECTID
	rootItemKey  = 132 // BTRFS_ROOT_ITEM_KEY
	lastSnapshot = 200 // where last_snapshot is in struct btrfs_root_item

	quotaTree     = 8   // BTRFS_QUOTA_TREE_OBJECTID
	groupLimitKey = 244 // BTRFS_QGROUP_LIMIT_KEY
	reserved      = 24  // where rsv_rfer is in struct btrfs_qgroup_limit_item
)

// struct btrfs_qgroup_limit
type qgroupLimit struct {
	flags, maxReferenced, maxExclusive, reservedReferenced, reservedExclusive uint64
}

// struct btrfs_qgroup_inherit with a list of at most one parent group: flags, num_qgroups,
// num_ref_copies, num_excl_copies, lim. What is not named stays zero.
type qgroupInherit struct {
	flags, parents uint64
	_              [2]uint64

	limit  qgroupLimit
	parent uint64 // only where parents is 1
}

// struct btrfs_ioctl_qgroup_create_args
type qgroupCreateArgs struct{ create, group uint64 }

// struct btrfs_ioctl_qgroup_assign_args
type qgroupAssignArgs struct{ assign, member, group uint64 }

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

// struct btrfs_ioctl_search_args
type searchArgs struct {
	tree                       uint64
	minObject, maxObject       uint64
	minOffset, maxOffset       uint64
	minTransaction, maxTransID uint64
	minType, maxType           uint32
	items                      uint32
	_                          uint32
	_                          [4]uint64

	// Of the first item found, a struct btrfs_ioctl_search_header, and what follows.
	transaction, object, offset uint64
	kind, length                uint32
	data                        [4096 - 104 - 32]byte
}

// struct btrfs_ioctl_get_subvol_info_args
type subvolInfo struct {
	_            [8 + 256 + 4*8]byte
	uuid, parent [16]byte // parent: of what it was when it was made a snapshot of that
	_            [16]byte
	_            [4]uint64
	_            [16]byte
	made         [16]byte // struct btrfs_ioctl_timespec: seconds, nanoseconds, padding
	_            [2 * 16]byte
	_            [8]uint64
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

// quota is what a new subvolume is born with: a limit in bytes where it is more than 0, and a
// group above its own that it belongs to where that is not 0.
type quota struct {
	limit int64
	group uint64
}

// createSubvolume makes a subvolume with its quota. They are one transaction, so there is
// no moment without the limit and no second call to pay for.
func createSubvolume(dir int, name string, q quota) error {
	return makeSubvolume(dir, btrfsSubvolCreateV2, 0, name, q)
}

// snapshotSubvolume makes a subvolume that holds what the one at the top of which
// source is holds now. It is on the disk, under its name, when it returns, and
// the directory dir is locked until then: the kernel commits a transaction, which
// calls for other directories share.
func snapshotSubvolume(dir int, name string, source int, q quota) error {
	return makeSubvolume(dir, btrfsSnapCreateV2, source, name, q)
}

func makeSubvolume(dir int, request uintptr, source int, name string, q quota) error {
	args := volArgsV2{fd: int64(source)}
	copy(args.name[:len(args.name)-1], name)
	inherit := &qgroupInherit{}
	if q.limit > 0 {
		inherit.flags = inheritSetLimits
		inherit.limit = qgroupLimit{flags: limitMaxReferenced, maxReferenced: uint64(q.limit)}
	}
	if q.group != 0 {
		inherit.parents, inherit.parent = 1, q.group
	}
	if q != (quota{}) {
		args.flags = subvolQgroupInherit
		args.size = uint64(unsafe.Offsetof(inherit.parent)) + 8*inherit.parents
		args.inherit = inherit
	}
	err := ioctl(dir, request, unsafe.Pointer(&args))
	runtime.KeepAlive(inherit)
	return err
}

// commit writes what was made, renamed and removed so far in the file system that fd is in
// to the disk, as one transaction; the data of files that are being written only as far as
// they are there already.
func commit(fd int) error {
	var transaction uint64
	if err := ioctl(fd, btrfsStartSync, unsafe.Pointer(&transaction)); err != nil {
		return err
	}
	return ioctl(fd, btrfsWaitSync, unsafe.Pointer(&transaction))
}

// reclaim writes everything to the disk and has the kernel free the blocks of subvolumes that
// were destroyed, which it else does within half a minute.
func reclaim(fd int) error { return ioctl(fd, btrfsSync, nil) }

// destroySubvolume unlinks a subvolume with all that is in it; the kernel
// frees its blocks afterwards, by itself. It is not quick where many of its
// files are cached (about 6 µs each), and holds the lock of dir as long.
func destroySubvolume(dir int, name string) error {
	args := volArgs{}
	copy(args.name[:len(args.name)-1], name)
	return ioctl(dir, btrfsSnapDestroy, unsafe.Pointer(&args))
}

// setLimit changes the limit of a subvolume, or of a group of them; 0 takes it away. top is a
// directory in another one, which has room: the change itself is counted to it.
func setLimit(top int, group uint64, limit int64) error {
	args := qgroupLimitArgs{group: group, limit: qgroupLimit{flags: limitMaxReferenced, maxReferenced: limitNone}}
	if limit > 0 {
		args.limit.maxReferenced = uint64(limit)
	}
	return ioctl(top, btrfsQgroupLimit, unsafe.Pointer(&args))
}

// createGroup makes a quota group above those of subvolumes; EEXIST where it is there.
func createGroup(top int, group uint64) error {
	args := qgroupCreateArgs{create: 1, group: group}
	return ioctl(top, btrfsQgroupCreate, unsafe.Pointer(&args))
}

// joinGroup makes a subvolume a member of a group, with all that is counted to it; EEXIST
// where it is one.
func joinGroup(top int, volume, group uint64) error {
	args := qgroupAssignArgs{assign: 1, member: volume, group: group}
	return ioctl(top, btrfsQgroupAssign, unsafe.Pointer(&args))
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

// fsid returns the file system's id as /sys/fs/btrfs spells it.
func fsid(fd int) (string, error) {
	args := fsInfoArgs{}
	if err := ioctl(fd, btrfsFSInfo, unsafe.Pointer(&args)); err != nil {
		return "", err
	}
	h := hex.EncodeToString(args.fsid[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], nil
}

// subvolumeID returns the id of the subvolume that fd is in.
func subvolumeID(fd int) (uint64, error) {
	args := inoLookupArgs{object: subvolInode}
	if err := ioctl(fd, btrfsInoLookup, unsafe.Pointer(&args)); err != nil {
		return 0, err
	}
	return args.tree, nil
}

// wasSnapshotted reports whether a snapshot was ever taken of the subvolume that fd
// is in, or whether it is one.
func wasSnapshotted(fd int) (bool, error) {
	id, err := subvolumeID(fd)
	if err != nil {
		return false, err
	}
	n, err := readItem(fd, &searchArgs{
		tree: rootTree, minObject: id, maxObject: id, maxOffset: ^uint64(0), minType: rootItemKey, maxType: rootItemKey,
	}, lastSnapshot)
	return n != 0, err
}

// readItem reads the number at an offset in the one item of a tree that is asked for.
func readItem(fd int, args *searchArgs, at uint32) (uint64, error) {
	args.maxTransID, args.items = ^uint64(0), 1
	if err := ioctl(fd, btrfsTreeSearch, unsafe.Pointer(args)); err != nil {
		return 0, err
	}
	if args.items != 1 || args.length < at+8 {
		return 0, unix.ENOENT
	}
	return binary.LittleEndian.Uint64(args.data[at:]), nil
}

// chunk is a part of the device that btrfs set aside for data, or for metadata.
type chunk struct {
	data           bool
	offset, length int64 // on the device
}

// readChunks lists the chunks of the file system that fd is in.
func readChunks(fd int) ([]chunk, error) {
	var all []chunk
	for from := uint64(0); ; {
		args := &searchArgs{
			tree: chunkTree, minObject: chunkObject, maxObject: chunkObject, minType: chunkItemKey, maxType: chunkItemKey,
			minOffset: from, maxOffset: ^uint64(0), maxTransID: ^uint64(0), items: 1,
		}
		if err := ioctl(fd, btrfsTreeSearch, unsafe.Pointer(args)); err != nil {
			return nil, err
		}
		if args.items != 1 || args.length < chunkOffset+8 {
			return all, nil
		}
		number := func(at int) int64 { return int64(binary.LittleEndian.Uint64(args.data[at:])) }
		c := chunk{data: number(chunkType)&chunkData != 0, offset: number(chunkOffset), length: number(0)}
		all = append(all, c)
		from = args.offset + uint64(c.length)
	}
}

// inherited returns what setInherited noted with a subvolume, 0 where that is nothing. It is kept in its quota group, as bytes that are set aside for it: the format
// has a field for those which the kernel writes and reads back, and does not heed.
func inherited(fd int, volume uint64) (int64, error) {
	n, err := readItem(fd, &searchArgs{
		tree: quotaTree, minOffset: volume, maxOffset: volume, minType: groupLimitKey, maxType: groupLimitKey,
	}, reserved)
	if err == unix.ENOENT {
		return 0, nil
	}
	return int64(n), err
}

// setInherited notes a number of bytes with a subvolume. top is as for setLimit.
func setInherited(top int, volume uint64, n int64) error {
	args := qgroupLimitArgs{group: volume, limit: qgroupLimit{flags: limitReserved, reservedReferenced: uint64(n)}}
	return ioctl(top, btrfsQgroupLimit, unsafe.Pointer(&args))
}

// subvolumeMade returns when the subvolume that fd is in was made, in nanoseconds of Unix time.
func subvolumeMade(fd int) (int64, error) {
	var info subvolInfo
	if err := ioctl(fd, btrfsSubvolInfo, unsafe.Pointer(&info)); err != nil {
		return 0, err
	}
	return int64(binary.LittleEndian.Uint64(info.made[:]))*1e9 + int64(binary.LittleEndian.Uint32(info.made[8:])), nil
}

// common returns the time, in seconds, up to which two subvolumes were one and the same: an
// inode that has the same number and the same, earlier, ctime in both did not
// change since. 0: nothing is known.
func common(a, b int) int64 {
	var info [2]subvolInfo
	for i, fd := range []int{a, b} {
		if ioctl(fd, btrfsSubvolInfo, unsafe.Pointer(&info[i])) != nil {
			return 0
		}
	}
	made := func(i int) int64 { return int64(binary.LittleEndian.Uint64(info[i].made[:])) }
	switch {
	case info[0].parent == info[1].uuid:
		return made(0)
	case info[1].parent == info[0].uuid:
		return made(1)
	case info[0].parent == info[1].parent && info[0].parent != [16]byte{}:
		return min(made(0), made(1))
	}
	return 0
}

func isBtrfs(fd int) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return false, err
	}
	return uint32(st.Type) == unix.BTRFS_SUPER_MAGIC, nil
}
