// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

// How much a snapshot holds is noted with its subvolume: quotas count a block to the
// subvolume that wrote it, so a snapshot's own count is next to nothing. With a
// layer that was made of something the size of that is noted, and there it is the part that
// the layer's own count lacks. It is not in the tree: the first write to a copy makes the
// kernel count a reference to each of hundreds of blocks, in the commit that the next
// snapshot waits for.

// setSize notes it for a subvolume that exists.
func (s *Store) setSize(fd int, size int64) error {
	volume, err := subvolumeID(fd)
	if err != nil {
		return err
	}
	return setInherited(s.top, volume, size)
}

// holds returns how many bytes a layer or a snapshot holds, -1 where nothing
// counts it. What a layer deleted of what it was made of is still in it.
func (s *Store) holds(fd int, isLayer bool) int64 {
	if s.limitErr != nil || !isSubvolume(fd) {
		return -1
	}
	volume, err := subvolumeID(fd)
	if err != nil {
		return -1
	}
	size, err := inherited(s.top, volume)
	if err != nil {
		return -1
	}
	if !isLayer {
		return size
	}
	own, err := readContent(s.fsid, volume)
	if err != nil {
		return -1
	}
	return size + own
}
