// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// CreateFrom is Create with the content of a snapshot. diskBytes is of what the new
// layer writes itself; on btrfs, what it has from the snapshot stays counted to who
// wrote it. On btrfs the cost does not grow with the snapshot, and many at once are
// nearly as fast as one; on a plain store it is a copy, which ctx can end.
//
// All or nothing. Errors: Invalid, NotFound, Exists, Exhausted.
func (s *Store) CreateFrom(ctx context.Context, id, snapshot string, diskBytes int64) (*Layer, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if err := checkID(snapshot); err != nil {
		return nil, err
	}
	if err := checkLimit(diskBytes); err != nil {
		return nil, err
	}
	return s.copyOf(ctx, id, "snapshot "+snapshot, diskBytes, func() (int, bool, error) {
		fd, err := s.openSnapshot(snapshot)
		return fd, false, err
	})
}

// Fork is CreateFrom with the content that the layer, or the snapshot, of has now: what a
// Snapshot of it and a layer of that would give, for half the commits. What is being written
// meanwhile is in it or not, as with Snapshot.
//
// All or nothing. Errors: Invalid, NotFound, Exists, Exhausted.
func (s *Store) Fork(ctx context.Context, id, of string, diskBytes int64) (*Layer, error) {
	for _, id := range []string{id, of} {
		if err := checkID(id); err != nil {
			return nil, err
		}
	}
	if err := checkLimit(diskBytes); err != nil {
		return nil, err
	}
	return s.copyOf(ctx, id, of, diskBytes, func() (int, bool, error) { return s.openSource(of) })
}

// copyOf makes the layer id with the content of what open opens, which is named what in
// errors.
func (s *Store) copyOf(ctx context.Context, id, what string, diskBytes int64, open func() (source int, isLayer bool, err error)) (*Layer, error) {
	leave, err := s.enterNew()
	if err != nil {
		return nil, err
	}
	defer leave()
	defer s.copies.begin()()
	if unix.Faccessat(s.layers, id, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) == nil {
		return nil, fault.New(fault.Exists, "the layer %s exists", id)
	}
	source, isLayer, err := open()
	if err != nil {
		return nil, err
	}
	defer unix.Close(source)
	fd := -1
	err = s.stage(ctx, id, func(slot *slot) error {
		if fd, err = s.clone(ctx, slot.dir, id, source, isLayer, diskBytes); err != nil {
			return err
		}
		if err := unix.Renameat2(slot.dir, id, s.layers, id, unix.RENAME_NOREPLACE); err != nil {
			return err
		}
		if err := s.makeLogs(id); err != nil {
			s.undo(id)
			return err
		}
		return nil
	})
	if err != nil && fd >= 0 {
		unix.Close(fd)
	}
	switch {
	case err == unix.EEXIST:
		return nil, fault.New(fault.Exists, "the layer %s exists", id)
	case err != nil:
		return nil, failed(err, "the layer %s cannot be made of %s", id, what)
	}
	s.persistence.made.Add(1)
	l := &Layer{id: id, fd: fd, store: s}
	l.roomy.Store(true)
	return l, nil
}

// Exchange gives a layer another content: that of the snapshot from, or none where from
// is "". It makes the new content, calls ready, which waits until nobody uses the old one,
// and then exchanges them; where ready fails nothing is exchanged. The limit is diskBytes from
// then on, as in Create. The old content is thrown away, under who has it open too; the logs stay.
//
// All or nothing. [Store.CommitCopies] brings it to the disk: a crash of the host before that leaves
// either content. Errors: Invalid, NotFound, Exhausted.
func (s *Store) Exchange(ctx context.Context, id, from string, diskBytes int64, ready func() error) error {
	if err := checkID(id); err != nil {
		return err
	}
	if err := checkLimit(diskBytes); err != nil {
		return err
	}
	source := -1
	if from != "" {
		if err := checkID(from); err != nil {
			return err
		}
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	defer s.copies.begin()()
	if unix.Faccessat(s.layers, id, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return fault.New(fault.NotFound, "there is no layer %s", id)
	}
	if from != "" {
		if source, err = s.openSnapshot(from); err != nil {
			return err
		}
		defer unix.Close(source)
	}
	err = s.stage(ctx, id, func(slot *slot) error {
		var fd int
		var err error
		if from == "" {
			fd, err = s.emptyLayer(slot.dir, id, diskBytes)
		} else {
			fd, err = s.clone(ctx, slot.dir, id, source, false, diskBytes)
		}
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if s.kind == Plain {
			if err := unix.Syncfs(fd); err != nil {
				return err
			}
		}
		if err := ready(); err != nil {
			return err
		}
		return unix.Renameat2(slot.dir, id, s.layers, id, unix.RENAME_EXCHANGE)
	})
	switch {
	case err == unix.ENOENT:
		return fault.New(fault.NotFound, "there is no layer %s", id)
	case err != nil:
		return failed(err, "the content of layer %s cannot be exchanged", id)
	}
	s.uncommitted.Store(true)
	return nil
}

// stage calls f with a slot of the staging area that is f's alone, and throws away
// what is there under the name id afterwards. Where f succeeds that is deleted with the
// trash's next kick.
func (s *Store) stage(ctx context.Context, id string, f func(*slot) error) error {
	slot, err := s.staging.take(ctx)
	if err != nil {
		return err
	}
	defer s.staging.give(slot)
	err = f(slot)
	if left := s.trash.put(slot.dir, id); left != nil && left != unix.ENOENT {
		s.log.Error("what is left of a copy stays until the next start", "id", id, "error", left)
	}
	if err != nil {
		s.trash.kick()
	}
	return err
}

// clone makes name in dir, with a copy of the tree `upper` in source, which is a layer or
// a snapshot, and opens it. On btrfs everything else in source comes along.
func (s *Store) clone(ctx context.Context, dir int, name string, source int, isLayer bool, limit int64) (int, error) {
	if s.limitErr != nil {
		limit = 0
	}
	if s.kind != Plain && isSubvolume(source) {
		if err := snapshotSubvolume(dir, name, source, s.quota(limit)); err != nil {
			return -1, err
		}
		fd, err := openDir(dir, name)
		if err != nil {
			return -1, err
		}
		if size := s.weigh(source, isLayer, fd); size >= commitBytes {
			s.uncommitted.Store(true)
		}
		return fd, nil
	}
	fd, err := s.makeTop(dir, name, limit)
	if err != nil {
		return -1, err
	}
	if err := copyTree(ctx, source, "upper", fd, "upper"); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// makeTop makes an empty directory, a subvolume where there are such, and opens it.
func (s *Store) makeTop(dir int, name string, limit int64) (int, error) {
	var err error
	if s.kind == Plain {
		err = unix.Mkdirat(dir, name, 0o755)
	} else {
		err = createSubvolume(dir, name, s.quota(limit))
	}
	if err != nil {
		return -1, err
	}
	return openDir(dir, name)
}

// emptyLayer makes a layer with nothing in it.
func (s *Store) emptyLayer(dir int, name string, limit int64) (_ int, err error) {
	if s.limitErr != nil {
		limit = 0
	}
	fd, err := s.makeTop(dir, name, limit)
	if err != nil {
		return -1, err
	}
	if err := makeTrees(fd); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func isSubvolume(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Ino == subvolInode
}
