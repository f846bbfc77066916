// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// userID is the sandbox's user, as a layer has it on the disk; a volume belongs to it.
const userID = 1000

// volumeTree is the directory of a volume that has its files.
const volumeTree = "data"

// CreateVolume makes an empty volume: a directory that no layer owns, on btrfs a
// subvolume. limit is the most that it may hold in bytes, as in Create; 0 is none. A
// limit that would not be enforced is refused. All or nothing. Errors: Invalid,
// Exists, Exhausted, Unsupported (with Info's DiskLimit).
func (s *Store) CreateVolume(id string, limit int64) error {
	if err := checkID(id); err != nil {
		return err
	}
	if err := checkLimit(limit); err != nil {
		return err
	}
	leave, err := s.enterNew()
	if err != nil {
		return err
	}
	defer leave()
	if limit != 0 && s.limitErr != nil {
		return s.limitErr
	}
	fd, err := s.makeTop(s.volumes, id, limit)
	if err == unix.EEXIST {
		return fault.New(fault.Exists, "the volume %s exists", id)
	}
	if err == nil {
		err = errors.Join(furnishVolume(fd), unix.Close(fd))
	}
	if err != nil {
		if undo := s.discardVolume(id); undo != nil {
			s.log.Error("a half-made volume is left behind", "id", id, "error", undo)
		}
		return failed(err, "the volume %s cannot be made", id)
	}
	s.persistence.made.Add(1)
	return nil
}

// furnishVolume makes `data` in a new volume. It gets its name when it belongs to
// the user: a volume without it was never finished, and Open throws it away.
func furnishVolume(fd int) error {
	const unfinished = "data.new"
	if err := unix.Mkdirat(fd, unfinished, 0o755); err != nil {
		return err
	}
	if err := unix.Fchmodat(fd, unfinished, 0o755, 0); err != nil {
		return err
	}
	if err := unix.Fchownat(fd, unfinished, userID, userID, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	return unix.Renameat(fd, unfinished, fd, volumeTree)
}

// OpenVolume opens the data directory of a volume. What is in it is hostile. The
// caller closes it; open_tree with OPEN_TREE_CLONE and AT_EMPTY_PATH takes it.
// Errors: Invalid, NotFound.
func (s *Store) OpenVolume(id string) (*os.File, error) {
	fd, leave, err := s.enterVolume(id)
	if err != nil {
		return nil, err
	}
	defer leave()
	defer unix.Close(fd)
	data, err := openDir(fd, volumeTree)
	if err != nil {
		return nil, failed(err, "the volume %s cannot be opened", id)
	}
	return os.NewFile(uintptr(data), fmt.Sprintf("volumes/%s", id)), nil
}

// VolumeUsage returns what a volume holds and its limit, in bytes; the limit 0 is
// none. Errors: Invalid, NotFound, Unsupported (with Info's DiskLimit).
func (s *Store) VolumeUsage(id string) (bytes, limit int64, err error) {
	fd, leave, err := s.enterVolume(id)
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	defer unix.Close(fd)
	return s.usage(fd, "volume", id)
}

// RemoveVolume takes a volume away with all that is in it, at once; the space comes
// back later. The volume must not be mounted. One that does not exist is not an error.
// Error: Invalid.
func (s *Store) RemoveVolume(id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := s.discardVolume(id); err != nil {
		return failed(err, "the volume %s cannot be removed", id)
	}
	return nil
}

func (s *Store) discardVolume(id string) error {
	defer s.trash.kick()
	return ignore(s.trash.put(s.volumes, id), unix.ENOENT)
}

// Volumes returns the ids of all volumes, in no order.
func (s *Store) Volumes() ([]string, error) {
	leave, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	all, err := names(s.volumes)
	if err != nil {
		return nil, failed(err, "the volumes cannot be listed")
	}
	return onlyIDs(all), nil
}

// enterVolume opens the directory of a volume, and keeps the store open until leave
// is called.
func (s *Store) enterVolume(id string) (fd int, leave func(), err error) {
	if err := checkID(id); err != nil {
		return -1, nil, err
	}
	if leave, err = s.enter(); err != nil {
		return -1, nil, err
	}
	fd, err = openDir(s.volumes, id)
	if err == nil {
		return fd, leave, nil
	}
	leave()
	if err == unix.ENOENT {
		return -1, nil, fault.New(fault.NotFound, "there is no volume %s", id)
	}
	return -1, nil, failed(err, "the volume %s cannot be opened", id)
}
