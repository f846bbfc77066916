// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const mib = 1 << 20

// storeReserve is what the disks in a loop store never take of it together. btrfs sets whole
// chunks of at most a tenth of its size, and a GiB, aside for data: without room for one more of
// metadata, nothing can be renamed or made, and little deleted.
func storeReserve(size int64) int64 { return min(max(size/8, 64*mib), 4*gib) }

// hostReserve is what the store leaves free of the host's file system: for the records and
// logs of the server, for what others write between two looks, and for metadata of the store.
func hostReserve(size int64) int64 { return min(size/16, gib) }

// storeGroup is the quota group 1/1, above those of all disks in a loop store. Its limit is what
// they may hold together. The top of the store is no member: the server's own renames and
// directories, and changes of limits, work while the disks are full.
const storeGroup uint64 = 1<<48 | 1

// quota is what a new disk is born with.
func (s *Store) quota(limit int64) quota { return quota{limit: limit, group: s.group} }

// openGroupOfAll makes the group of all disks, the first time with those that are there. The
// limit, which comes last, says that all of them are members: new ones are born as such.
func (s *Store) openGroupOfAll() error {
	g := openGroup(s.fsid, storeGroup)
	if g.read("limit_flags")&limitMaxReferenced != 0 && g.err == nil {
		s.group = storeGroup
		return nil
	}
	if err := ignore(createGroup(s.top, storeGroup), unix.EEXIST); err != nil {
		return fmt.Errorf("make the quota group of all disks: %w", err)
	}
	entries, err := os.ReadDir("/sys/fs/btrfs/" + s.fsid + "/qgroups")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		number, ok := strings.CutPrefix(entry.Name(), "0_")
		volume, err := strconv.ParseUint(number, 10, 64)
		if !ok || err != nil || volume == topVolume {
			continue
		}
		// ENOENT: it went away with the last of its blocks.
		if err := joinGroup(s.top, volume, storeGroup); err != nil && err != unix.EEXIST && err != unix.ENOENT {
			return fmt.Errorf("make subvolume %d a member of the quota group of all disks: %w", volume, err)
		}
	}
	if err := setLimit(s.top, storeGroup, 1<<62); err != nil {
		return fmt.Errorf("limit the quota group of all disks: %w", err)
	}
	s.group = storeGroup
	return nil
}

// holdings are what the disks in a loop store hold together.
type holdings struct {
	used, limit int64 // of the group
	beside      int64 // what the top of the store holds: logs, and the server's directories
	unwritten   int64 // data of both that is on its way to the disk
	err         error
}

func (s *Store) readHoldings() holdings {
	all, top := openGroup(s.fsid, storeGroup), openGroup(s.fsid, topVolume)
	h := holdings{limit: int64(all.read("max_referenced"))}
	disks, beside := int64(all.read("rsv_data")), int64(top.read("rsv_data"))
	h.used = disks + int64(all.read("referenced")+all.read("rsv_meta_pertrans")+all.read("rsv_meta_prealloc"))
	h.beside = beside + int64(top.read("referenced"))
	h.unwritten = disks + beside
	h.err = errors.Join(all.err, top.err)
	return h
}

// readMetadata returns how much btrfs set aside for metadata, and how much of it is free.
func (s *Store) readMetadata() (total, free int64, err error) {
	at := "/sys/fs/btrfs/" + s.fsid + "/allocation/metadata/"
	if total, err = readNumber(at + "total_bytes"); err != nil {
		return 0, 0, err
	}
	used, err := readNumber(at + "bytes_used")
	return total, total - used, err
}

// back has the host's file system set aside what the chunks of metadata need. A write of
// metadata that finds no room there makes btrfs read-only for everybody; one of data fails
// for who wrote it alone.
func (s *Store) back(metadata int64) error {
	if metadata == s.backed {
		return nil
	}
	chunks, err := readChunks(s.top)
	if err != nil {
		return fmt.Errorf("list the chunks of the store: %w", err)
	}
	for _, c := range chunks {
		if c.data {
			continue
		}
		switch err := fallocate(s.loop.file, c.offset, c.length); err {
		case nil:
		case unix.EOPNOTSUPP, unix.ENOSYS:
			s.log.Warn("the file system of the data directory cannot set space aside: if it fills up, the store may stop writing")
			s.backed = metadata
			return nil
		default:
			return fmt.Errorf("set %d bytes aside for metadata of the store: %w", c.length, err)
		}
	}
	s.backed = metadata
	return nil
}

// fallocate sets a range of a file aside and leaves what is in it.
func fallocate(file *os.File, offset, length int64) error {
	for {
		err := unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_KEEP_SIZE, offset, length)
		if err != unix.EINTR {
			return err
		}
	}
}
