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
	if err := s.limitable(fd, "layer", id); err != nil {
		return err
	}
	volume, err := subvolumeID(fd)
	if err == nil {
		err = setLimit(s.top, volume, diskBytes)
	}
	if err != nil {
		return failed(err, "the limit of layer %s cannot be set to %d bytes", id, diskBytes)
	}
	return nil
}

// Usage returns what a layer holds and its limit, in bytes; the limit 0 is none.
// Data that is written and not yet on the disk counts. Errors: Invalid,
// NotFound, Unsupported (with Info's DiskLimit): without quotas, only a walk
// through the tree could tell, whose length its owner decides.
func (s *Store) Usage(id string) (bytes, limit int64, err error) {
	if err := checkID(id); err != nil {
		return 0, 0, err
	}
	leave, err := s.enter()
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	fd, err := s.open(id)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Close(fd)
	return s.usage(fd, "layer", id)
}

// usage reads what the subvolume at fd holds and may hold.
func (s *Store) usage(fd int, what, id string) (bytes, limit int64, err error) {
	if err := s.limitable(fd, what, id); err != nil {
		return 0, 0, err
	}
	volume, err := subvolumeID(fd)
	if err != nil {
		return 0, 0, failed(err, "the subvolume of %s %s cannot be found", what, id)
	}
	return readGroup(s.fsid, volume)
}

// limitable says why the directory at fd cannot have a limit of its own, or nil.
func (s *Store) limitable(fd int, what, id string) error {
	if s.limitErr != nil {
		return s.limitErr
	}
	// A directory made before the store could limit belongs to the subvolume
	// of the whole store: limiting that would hit everybody.
	if !isSubvolume(fd) {
		return fault.New(fault.Unsupported, "the %s %s is not a subvolume; it was made by a store without limits", what, id).
			WithRemedy("delete it and create it again")
	}
	return nil
}

// readGroup reads the quota group of a subvolume. sysfs has the kernel's
// numbers of now; the quota tree has those of the last commit.
func readGroup(fsid string, volume uint64) (bytes, limit int64, err error) {
	g := openGroup(fsid, volume)
	used := g.read("referenced") + g.read("rsv_data") + g.read("rsv_meta_pertrans") + g.read("rsv_meta_prealloc")
	if g.read("limit_flags")&limitMaxReferenced != 0 {
		if most := g.read("max_referenced"); most != limitNone {
			limit = int64(most)
		}
	}
	return int64(used), limit, g.err
}

// readContent returns what files hold of that: not what is set aside for changes of metadata,
// which is far more than they need and given back with the next commit.
func readContent(fsid string, volume uint64) (bytes int64, err error) {
	g := openGroup(fsid, volume)
	return int64(g.read("referenced") + g.read("rsv_data")), g.err
}

// group reads the numbers of a quota group, and keeps the first error.
type group struct {
	name, dir string
	err       error
}

// openGroup names a group by its id, which for that of a subvolume is the subvolume's.
func openGroup(fsid string, id uint64) *group {
	name := fmt.Sprintf("%d_%d", id>>48, id&(1<<48-1))
	return &group{name: name, dir: "/sys/fs/btrfs/" + fsid + "/qgroups/" + name + "/"}
}

func (g *group) read(name string) uint64 {
	n, err := readNumber(g.dir + name)
	if err != nil && g.err == nil {
		g.err = fmt.Errorf("quota group %s: %w", g.name, err)
	}
	return uint64(n)
}

// readNumber reads a file of sysfs. What is over the most of an int64 there is negative here.
func readNumber(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return int64(n), err
}
