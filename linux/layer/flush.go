// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// flushDir is a directory of the store with one entry, flushName.
const (
	flushDir  = "flush"
	flushName = "taken"
)

// openFlush opens the directory that flushSubvolume asks for a snapshot in; -1 where there is
// no room to make it: a full store can be opened, and what is in it deleted.
func openFlush(top int) (int, error) {
	dir, err := ensureDir(top, flushDir)
	if err == nil {
		if err = unix.Mkdirat(dir, flushName, 0o700); err == nil || err == unix.EEXIST {
			return dir, nil
		}
		unix.Close(dir)
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		err = nil
	}
	return -1, err
}

// flushSubvolume writes the data of the subvolume at the top of which source is to the
// disk, and neither that of others nor a transaction: it asks for a snapshot of it under a
// name that is taken. The kernel writes the data before it looks at the name, so that the
// commit does not wait for it. A kernel that looked first would write nothing, and the
// snapshot that follows would take longer.
func flushSubvolume(dir, source int) error {
	return ignore(snapshotSubvolume(dir, flushName, source, quota{}), unix.EEXIST)
}

// Flush writes what a layer's files hold to the disk, as far as it was written before the
// call, so that a Snapshot or a Fork that follows has little to write. It is for the time
// that those take alone: after a crash the files need not be found. When ctx ends first, it
// returns ctx's error, and the writing goes on; Close waits for it. Errors: Invalid, NotFound.
func (s *Store) Flush(ctx context.Context, id string) error {
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
	write := func() error { return flushSubvolume(s.flush, fd) }
	if s.flush < 0 || !isSubvolume(fd) {
		write = func() error { return unix.Syncfs(fd) }
	}
	done := make(chan error, 1)
	s.syncing.Go(func() {
		defer unix.Close(fd)
		done <- write()
	})
	select {
	case err := <-done:
		if err != nil {
			return failed(err, "the data of layer %s could not be written to the disk", id)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
