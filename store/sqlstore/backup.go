// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// Copy writes the records of one instant to a new file at path, which only its owner may read,
// while others read and write; until it ends the log is not moved into the data base and grows.
// One copy is made at a time. It needs as much space as the data base has bytes, and is refused
// if less would be left than the store needs to accept work. It writes all or nothing.
func (s *Store) Copy(ctx context.Context, path string) (err error) {
	if err := s.Room(); err != nil {
		return err
	}
	if err := s.roomForCopy(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // SQLite would let others read it
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the copy of the records %s cannot be made", path)
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			err = errors.Join(err, RemoveCopy(path))
		}
	}()
	if err := s.take(ctx, s.views); err != nil { // Close waits for it
		return err
	}
	defer func() { s.views <- struct{}{} }()
	db := sql.OpenDB(s.toWrite)
	defer func() { _ = db.Close() }()
	s.checking.Store(true)
	defer s.checking.Store(false)
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", path); err != nil {
		return s.dialect.explain(ctx, err)
	}
	return nil
}

// RemoveCopy removes what [Store.Copy] and an Open of that made, and what a crash left of it.
func RemoveCopy(path string) error {
	var all error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return all
}

func (s *Store) roomForCopy(dir string) error {
	info, err := s.held.Stat()
	if err != nil {
		return err
	}
	need := info.Size() + info.Size()/8 + enoughRoom + longLog
	if wal, err := os.Stat(s.file + "-wal"); err == nil {
		need += wal.Size()
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the room for a copy of the records cannot be told")
	}
	if free := int64(st.Bavail) * st.Bsize; free < need { //nolint:gosec // a disk has fewer bytes
		return fault.NoSpace(fault.RecordsDisk, nil, "a copy of the records needs %d MB free, and the data directory's disk has %d", need>>20, free>>20).
			WithRemedy("free space on the file system of the data directory")
	}
	return nil
}
