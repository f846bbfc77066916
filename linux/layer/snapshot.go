// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// Snapshot keeps what the layer, or the snapshot, of holds now, as id: for good, on
// the disk when it returns, and never changed. It returns what is kept in bytes, -1
// where nothing counts it. What is being written meanwhile is in it or not, file by
// file: who wants one instant stops the writers first, and calls Sync before that, as
// else everything unwritten in the whole store is written while they wait.
//
// On btrfs the cost does not grow with the layer, and the bytes stay counted to
// who wrote them: a limit covers what its layer wrote and snapshots still hold. On a
// plain store it is a copy, which ctx can end.
//
// All or nothing. Errors: Invalid, NotFound, Exists, Exhausted.
func (s *Store) Snapshot(ctx context.Context, of, id string) (int64, error) {
	for _, id := range []string{of, id} {
		if err := checkID(id); err != nil {
			return 0, err
		}
	}
	leave, err := s.enterNew()
	if err != nil {
		return 0, err
	}
	defer leave()
	defer s.copies.begin()()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	source, isLayer, err := s.openSource(of)
	if err != nil {
		return 0, err
	}
	defer unix.Close(source)
	if s.hasSnapshot(id) {
		return 0, fault.New(fault.Exists, "the snapshot %s exists", id)
	}
	if s.kind != Plain && isSubvolume(source) {
		slot := s.snapshots.of(id)
		err = snapshotSubvolume(slot.dir, id, source, s.quota(0))
		slot.mu.Unlock()
	} else {
		err = s.keepCopy(ctx, source, id)
	}
	switch {
	case err == unix.EEXIST:
		return 0, fault.New(fault.Exists, "the snapshot %s exists", id)
	case err != nil:
		return 0, failed(err, "the snapshot %s cannot be made", id)
	}
	fd, err := s.openSnapshot(id)
	if err != nil { // it is there, and so is its size
		s.log.Debug("the size of a copy is not kept", "error", err)
		return s.holds(source, isLayer), nil
	}
	defer unix.Close(fd)
	return s.weigh(source, isLayer, fd), nil
}

// weigh notes with the copy at fd how much is in its source, and returns that. Quotas count
// what a tree takes when it is committed, which it was when the copy was made.
func (s *Store) weigh(source int, isLayer bool, fd int) int64 {
	size := s.holds(source, isLayer)
	if size > 0 {
		if err := s.setSize(fd, size); err != nil {
			s.log.Debug("the size of a copy is not kept", "error", err)
		}
	}
	return size
}

// keepCopy copies a tree and makes it the snapshot id.
func (s *Store) keepCopy(ctx context.Context, source int, id string) error {
	return s.stage(ctx, id, func(slot *slot) error {
		fd, err := s.clone(ctx, slot.dir, id, source, true, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		defer s.trash.clean(fd)
		return s.publish(slot, id, fd)
	})
}

// publish makes what is in a slot of the staging area the snapshot id, for good.
func (s *Store) publish(staged *slot, id string, fd int) error {
	if err := unix.Syncfs(fd); err != nil {
		return err
	}
	slot := s.snapshots.of(id)
	defer slot.mu.Unlock()
	if err := unix.Renameat2(staged.dir, id, slot.dir, id, unix.RENAME_NOREPLACE); err != nil {
		return err
	}
	if err := unix.Fsync(slot.dir); err != nil {
		_ = s.trash.put(slot.dir, id)
		return err
	}
	return nil
}

// openSource opens a layer, or else a snapshot.
func (s *Store) openSource(id string) (fd int, isLayer bool, err error) {
	fd, err = openDir(s.layers, id)
	if err == unix.ENOENT {
		fd, err = s.openSnapshot(id)
		return fd, false, err
	}
	if err != nil {
		return -1, false, failed(err, "the layer %s cannot be opened", id)
	}
	return fd, true, nil
}

func (s *Store) openSnapshot(id string) (int, error) {
	fd, err := openDir(s.snapshots.at(id).dir, id)
	if err == unix.ENOENT {
		return -1, fault.New(fault.NotFound, "there is no layer and no snapshot %s", id)
	}
	if err != nil {
		return -1, failed(err, "the snapshot %s cannot be opened", id)
	}
	return fd, nil
}

func (s *Store) hasSnapshot(id string) bool {
	return unix.Faccessat(s.snapshots.at(id).dir, id, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// OpenSnapshot opens the tree of a snapshot, for reading: it is what `upper` was.
// The caller closes it. Errors: Invalid, NotFound.
func (s *Store) OpenSnapshot(id string) (*os.File, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	leave, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	top, err := s.openSnapshot(id)
	if err != nil {
		return nil, err
	}
	defer unix.Close(top)
	fd, err := openDir(top, "upper")
	if err != nil {
		return nil, failed(err, "the snapshot %s cannot be opened", id)
	}
	return os.NewFile(uintptr(fd), fmt.Sprintf("snapshots/%s", id)), nil
}

// OpenTree opens the tree of a layer, or of a snapshot, for reading: it is what `upper` is. The caller closes it.
// Errors: Invalid, NotFound.
func (s *Store) OpenTree(p Point) (*os.File, error) {
	if err := checkID(string(p)); err != nil {
		return nil, err
	}
	leave, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	top, _, err := s.openSource(string(p))
	if err != nil {
		return nil, err
	}
	defer unix.Close(top)
	fd, err := openDir(top, "upper")
	if err != nil {
		return nil, failed(err, "%s cannot be opened", p)
	}
	return os.NewFile(uintptr(fd), fmt.Sprintf("trees/%s", p)), nil
}

// RemoveSnapshot takes a snapshot away, at once; the space comes back later, as far
// as nothing else holds it. Layers and snapshots that were made of it stay. One that
// does not exist is not an error. Error: Invalid.
func (s *Store) RemoveSnapshot(id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	defer s.trash.kick()
	slot := s.snapshots.of(id)
	err = s.trash.put(slot.dir, id)
	slot.mu.Unlock()
	if err != nil && err != unix.ENOENT {
		return failed(err, "the snapshot %s cannot be removed", id)
	}
	return nil
}

// Snapshots returns the ids of all snapshots, in no order.
func (s *Store) Snapshots() ([]string, error) {
	leave, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	all, err := s.snapshots.names()
	if err != nil {
		return nil, failed(err, "the snapshots cannot be listed")
	}
	return onlyIDs(all), nil
}
