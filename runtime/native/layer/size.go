// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// sizeAttr is on the top directory of a snapshot: how many bytes it holds. Quotas count
// a block to the subvolume that wrote it, so a snapshot's own count is next to
// nothing. A layer that is made of the snapshot has the attribute from it, and there
// it is the part that the layer's own count lacks.
const sizeAttr = "trusted.sandpit.size"

func setSize(fd int, size int64) error {
	return unix.Fsetxattr(fd, sizeAttr, binary.LittleEndian.AppendUint64(nil, uint64(size)), 0)
}

func getSize(fd int) int64 {
	var buf [8]byte
	if n, err := unix.Fgetxattr(fd, sizeAttr, buf[:]); err != nil || n != len(buf) {
		return 0
	}
	return max(0, int64(binary.LittleEndian.Uint64(buf[:])))
}

// holds gives how many bytes a layer or a snapshot holds, -1 where nothing
// counts it. What a layer deleted of the snapshot that it was made of is still in it.
func (s *Store) holds(fd int, isLayer bool) int64 {
	if s.limitErr != nil || !isSubvolume(fd) {
		return -1
	}
	size := getSize(fd)
	if !isLayer {
		return size
	}
	volume, err := subvolumeID(fd)
	if err != nil {
		return -1
	}
	own, _, err := readGroup(s.fsid, volume)
	if err != nil {
		return -1
	}
	return size + own
}
