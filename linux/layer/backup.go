// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"io"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// SnapshotVolume keeps what the volume of holds now, as the snapshot id, which is only good for
// [Store.ExportDisk] and RemoveSnapshot. On btrfs it is of one instant, as the disk after a power
// cut; on a plain store it is a copy, of which each file is of another.
//
// All or nothing. Errors: Invalid, NotFound, Exists, Full.
func (s *Store) SnapshotVolume(ctx context.Context, of, id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	if err := s.Room(); err != nil {
		return err
	}
	source, leave, err := s.enterVolume(of)
	if err != nil {
		return err
	}
	defer leave()
	defer unix.Close(source)
	defer s.copies.begin()()
	if s.hasSnapshot(id) {
		return fault.New(fault.Exists, "the snapshot %s exists", id)
	}
	if s.kind != Plain && isSubvolume(source) {
		slot := s.snapshots.of(id)
		err = snapshotSubvolume(slot.dir, id, source, s.quota(0))
		slot.mu.Unlock()
	} else {
		err = s.stage(ctx, id, func(slot *slot) error {
			fd, err := s.makeTop(slot.dir, id, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if err := copyTree(ctx, source, volumeTree, fd, volumeTree); err != nil {
				return err
			}
			defer s.trash.clean(fd)
			return s.publish(slot, id, fd)
		})
	}
	switch {
	case err == unix.EEXIST:
		return fault.New(fault.Exists, "the snapshot %s exists", id)
	case err != nil:
		return failed(err, "the snapshot %s of a volume cannot be made", id)
	}
	return nil
}

// ImportLayer makes the layer id of an archive of [Store.ExportDisk], which is as hostile as that
// of [Store.Import]. diskBytes is as in Create; what the archive holds beyond it is kept.
//
// All or nothing. Errors: as Import's.
func (s *Store) ImportLayer(ctx context.Context, id string, r io.Reader, maxBytes, diskBytes int64) error {
	return s.importDisk(ctx, id, "layer", &s.layers, func(slot *slot) error {
		fd, err := s.emptyLayer(slot.dir, id, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return s.fill(ctx, fd, "upper", r, maxBytes, diskBytes)
	}, s.makeLogs)
}

// ImportVolume makes the volume id of an archive of [Store.ExportDisk]; see [Store.ImportLayer].
func (s *Store) ImportVolume(ctx context.Context, id string, r io.Reader, maxBytes, limit int64) error {
	return s.importDisk(ctx, id, "volume", &s.volumes, func(slot *slot) error {
		fd, err := s.makeTop(slot.dir, id, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := furnishVolume(fd); err != nil {
			return err
		}
		return s.fill(ctx, fd, volumeTree, r, maxBytes, limit)
	}, func(string) error { return nil })
}

// ImportSnapshot makes the snapshot id of an archive of [Store.ExportDisk]; see [Store.Import].
func (s *Store) ImportSnapshot(ctx context.Context, id string, r io.Reader, maxBytes int64) (int64, error) {
	return s.importSnapshot(ctx, id, r, maxBytes, true)
}

// fill unpacks an archive into a tree that is not in place yet, and limits it then.
func (s *Store) fill(ctx context.Context, fd int, tree string, r io.Reader, maxBytes, limit int64) error {
	if err := importTree(ctx, fd, tree, r, maxBytes, true); err != nil {
		return err
	}
	if limit > 0 && s.limitErr == nil {
		volume, err := subvolumeID(fd)
		if err == nil {
			err = setLimit(s.top, volume, limit)
		}
		if err != nil {
			return err
		}
	}
	return unix.Syncfs(fd)
}

// importDisk stages what fill makes, and puts it in place.
func (s *Store) importDisk(ctx context.Context, id, what string, place *int, fill func(*slot) error, placed func(id string) error) error {
	if err := checkID(id); err != nil {
		return err
	}
	leave, err := s.enterNew()
	if err != nil {
		return err
	}
	defer leave()
	err = s.stageImport(id, func(slot *slot) error {
		if err := fill(slot); err != nil {
			return err
		}
		if err := unix.Renameat2(slot.dir, id, *place, id, unix.RENAME_NOREPLACE); err != nil {
			return err
		}
		if err := placed(id); err != nil {
			return err
		}
		return unix.Fsync(*place)
	})
	switch {
	case err == unix.EEXIST:
		return fault.New(fault.Exists, "the %s %s exists", what, id)
	case ctx.Err() != nil && err != nil:
		return ctx.Err()
	case err != nil:
		return failed(err, "the %s %s cannot be imported", what, id)
	}
	return nil
}
