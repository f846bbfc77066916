// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"sandpit.dev/fault"
)

const (
	// longLog is the length from which the log is moved into the data base without waiting
	// for more commits. Its file is cut to that when it begins anew: what it holds then is
	// written over, and is part of the reserve.
	longLog = 16 << 20
	// Of the pages that deleted rows left, freePages (4 MB) and a sixteenth of the file
	// stay for the rows to come.
	freePages = 1024
	freePart  = 16
	// shrinkPages (1 MB) are freed at a time, while commits wait.
	shrinkPages = 256
	// shrinkRest is how much longer than that the store leaves alone after it.
	shrinkRest = 3
	// convertPages (64 MB) is the most that Open rewrites, in about a second, so that the file
	// can shrink later. Larger ones are for [Compact].
	convertPages = 16384
)

// logIsLong reports whether the log's file is longer than it is let grow.
func logIsLong(wal *os.File) func() bool {
	return func() bool {
		info, err := wal.Stat()
		return err == nil && info.Size() > longLog
	}
}

// tidy returns what is done after many commits: the log is moved into the file, and
// space that neither needs goes back to the file system.
func (s *Store) tidy(c *conn) func() error {
	checkpoint := s.walCheckpoint(c, hugeLog)
	return func() error {
		if err := checkpoint(); err != nil {
			return err
		}
		s.reserve.moved()
		if err := s.refill(); err != nil {
			return err
		}
		for {
			began := time.Now()
			if more, err := s.shrink(c); err != nil || !more {
				return err
			}
			if err := checkpoint(); err != nil {
				return err
			}
			s.reserve.moved()
			t := time.NewTimer(shrinkRest * time.Since(began))
			select {
			case <-t.C:
			case <-s.syncer.quit:
				t.Stop()
				return nil
			}
		}
	}
}

// walCheckpoint moves the log into the file beside readers and writers, on a
// connection of its own. When the log has become huge, in pages, because writing
// never rests, it blocks writes until the log can begin anew.
func (s *Store) walCheckpoint(c *conn, huge int64) func() error {
	return func() error {
		var busy, pages, moved int64
		if err := c.row("PRAGMA wal_checkpoint(PASSIVE)", nil, &busy, &pages, &moved); err != nil || pages < huge || s.checking.Load() {
			return err
		}
		if err := s.take(context.Background(), s.turn); err != nil {
			return nil // closing does it all the same
		}
		defer func() { s.turn <- struct{}{} }()
		return c.row("PRAGMA wal_checkpoint(RESTART)", nil, &busy, &pages, &moved)
	}
}

// shrink frees some of the pages that deleted rows left, and reports whether more are left.
func (s *Store) shrink(c *conn) (more bool, err error) {
	pages, free, err := s.room(c)
	spare := free - max(freePages, pages/freePart)
	if err != nil || spare < shrinkPages {
		return false, err
	}
	if err := s.take(context.Background(), s.turn); err != nil {
		return false, nil
	}
	defer func() { s.turn <- struct{}{} }()
	// Each row that it returns is a page less.
	text := fmt.Sprintf("PRAGMA incremental_vacuum(%d)", shrinkPages)
	if err := c.each(context.Background(), text, nil, func(func(...any) error) error { return nil }); err != nil {
		return false, err
	}
	s.syncer.committed()
	_, left, err := s.room(c)
	return left < free, err // not in a file that Open did not convert
}

func (s *Store) room(c *conn) (pages, free int64, err error) {
	if err := c.row("PRAGMA page_count", nil, &pages); err != nil {
		return 0, 0, err
	}
	return pages, free, c.row("PRAGMA freelist_count", nil, &free)
}

// convert changes a small file of an older version so that it can shrink.
func (s *Store) convert() error {
	var mode, pages int64
	if err := s.writer.row("PRAGMA auto_vacuum", nil, &mode); err != nil || mode != 0 {
		return err
	}
	if err := s.writer.row("PRAGMA page_count", nil, &pages); err != nil {
		return err
	}
	if pages <= convertPages {
		_, err := s.writer.exec("VACUUM")
		if err == nil {
			return nil
		}
		s.logger.Warn("the records cannot be rewritten so that they give space back; it is tried again with the next start", "error", err)
		return nil
	}
	s.logger.Warn("the records were made by an older version and give no space back: stop the server and run `sandpit doctor --repair`", "file", s.file, "bytes", pages*4096)
	return nil
}

// Convertible reports whether the data base at path was made by an older version, so that it
// cannot shrink until [Compact] has rewritten it, and how many bytes it has. The file must not be
// open elsewhere.
func Convertible(ctx context.Context, path string) (bool, int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	db, err := pool(path, "query_only(1)")
	if err != nil {
		return false, 0, err
	}
	defer func() { _ = db.Close() }()
	var mode, tables int64
	if err := db.QueryRowContext(ctx, "PRAGMA auto_vacuum").Scan(&mode); err != nil {
		return false, 0, err
	}
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master").Scan(&tables)
	return err == nil && mode == 0 && tables > 0, info.Size(), err
}

// Compact rewrites the data base at path without what deleted rows left. It needs as much space
// again while it runs. The file must not be open elsewhere.
func Compact(ctx context.Context, path string) error {
	db, err := pool(path, "auto_vacuum(INCREMENTAL)")
	if err == nil {
		_, err = db.ExecContext(ctx, "VACUUM")
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be rewritten", path).
			WithRemedy("free as much space as it takes on its file system and in the directory for temporary files")
	}
	return nil
}
