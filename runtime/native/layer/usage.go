// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// Resize changes the limit of a layer, from the next write on; 0 takes it
// away. A limit under what the layer holds stops it from growing and deletes
// nothing. Errors: Invalid, NotFound, Unsupported (with Info's DiskLimit).
func (s *Store) Resize(id string, diskBytes int64) error {
	if err := checkLimit(diskBytes); err != nil {
		return err
	}
	return s.limited(id, func(fd int) error {
		if err := setLimit(fd, diskBytes); err != nil {
			return failed(err, "the limit of layer %s cannot be set to %d bytes", id, diskBytes)
		}
		return nil
	})
}

// Usage gives what a layer holds and its limit, in bytes; the limit 0 is none.
// Data that is written and not yet on the disk counts. Errors: Invalid,
// NotFound, Unsupported (with Info's DiskLimit): without quotas, only a walk
// through the tree could tell, whose length its owner decides.
func (s *Store) Usage(id string) (bytes, limit int64, err error) {
	err = s.limited(id, func(fd int) error {
		volume, err := subvolumeID(fd)
		if err != nil {
			return failed(err, "the subvolume of layer %s cannot be found", id)
		}
		bytes, limit, err = readGroup(s.fsid, volume)
		return err
	})
	return bytes, limit, err
}

// limited calls f with the directory of a layer that has a limit of its own.
func (s *Store) limited(id string, f func(fd int) error) error {
	if err := checkID(id); err != nil {
		return err
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	fd, err := s.open(id)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if s.limitErr != nil {
		return s.limitErr
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return failed(err, "the layer %s cannot be looked at", id)
	}
	// A directory made before the store could limit belongs to the subvolume
	// of the whole store: limiting that would hit everybody.
	if st.Ino != subvolInode {
		return fault.New(fault.Unsupported, "the layer %s is not a subvolume; it was made by a store without limits", id).
			WithRemedy("delete the sandbox and create it again")
	}
	return f(fd)
}

// readGroup reads the quota group of a subvolume. sysfs has the kernel's
// numbers of now; the quota tree has those of the last commit.
func readGroup(fsid string, volume uint64) (bytes, limit int64, err error) {
	dir := fmt.Sprintf("/sys/fs/btrfs/%s/qgroups/0_%d/", fsid, volume)
	read := func(name string) (n uint64) {
		text, e := os.ReadFile(dir + name)
		if e == nil {
			n, e = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		}
		if e != nil && err == nil {
			err = fmt.Errorf("quota group 0/%d: %w", volume, e)
		}
		return n
	}
	used := read("referenced") + read("rsv_data") + read("rsv_meta_pertrans") + read("rsv_meta_prealloc")
	if read("limit_flags")&limitMaxReferenced != 0 {
		if most := read("max_referenced"); most != limitNone {
			limit = int64(most)
		}
	}
	return int64(used), limit, err
}
