// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"sandpit.dev/fault"
)

// checkAtOpen is the largest file (32 MB, some tenths of a second) that Open checks before
// it returns; a larger one is checked while it is in use.
const checkAtOpen = 32 << 20

const damagedRemedy = "stop the server, run `sandpit doctor`, and put a backup of the data directory in its place"

func damaged(file, verdict string) error {
	return fault.New(fault.Unavailable, "%s is damaged: %s", file, verdict).WithRemedy(damagedRemedy)
}

// checkNow checks the whole file if it is small, before anything is written to it, and
// reports whether it did.
func (s *Store) checkNow(ctx context.Context) (done bool, err error) {
	info, err := os.Stat(s.file)
	if err != nil || info.Size() > s.checkAtOpen {
		return false, err
	}
	db, err := pool(s.file, "query_only(1)")
	if err != nil {
		return false, err
	}
	defer func() { _ = db.Close() }()
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return false, err
	}
	if verdict != "ok" {
		return true, damaged(s.file, verdict)
	}
	return true, nil
}

// checkLater checks a large file beside readers and writers, one table with its indexes after the
// other, until ctx is done. [Store.Room] reports damage from then on.
func (s *Store) checkLater(ctx context.Context) {
	s.checking.Store(true) // the log begins anew once the check reads no more
	defer s.checking.Store(false)
	err := s.checkTables(ctx)
	if ctx.Err() != nil || err == nil {
		return
	}
	err = s.dialect.explain(ctx, err)
	if e := fault.As(err); e.Remedy == "" {
		err = e.WithRemedy(damagedRemedy)
	}
	s.damage.Store(&err)
	s.logger.Error("the records are damaged: no work is begun", "file", s.file, "error", err)
}

func (s *Store) checkTables(ctx context.Context) error {
	c, err := s.dialect.openConn(ctx, s.toRead)
	if err != nil {
		return err
	}
	defer c.close()
	var tables []string
	err = c.each(ctx, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'", nil, func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		tables = append(tables, name)
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range tables {
		verdict := ""
		err := c.each(ctx, "PRAGMA quick_check('"+name+"')", nil, func(scan func(...any) error) error { // the names are the migrations' own
			var line string
			err := scan(&line)
			if verdict == "" {
				verdict = line
			}
			return err
		})
		if err != nil {
			return err
		}
		if verdict != "ok" {
			return damaged(s.file, verdict)
		}
	}
	return nil
}

// Check reads the whole data base at path and returns nil if it is sound or missing. It changes
// nothing. The file must not be open elsewhere. Damage is Unavailable.
func Check(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	const remedy = "put a copy in its place, or move it away to begin anew"
	db, err := pool(path, "query_only(1)")
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be opened", path).WithRemedy(remedy)
	}
	defer func() { _ = db.Close() }()
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fault.Wrap(fault.Unavailable, err, "%s cannot be read", path).WithRemedy(remedy)
	}
	if verdict != "ok" {
		return fault.New(fault.Unavailable, "%s is damaged: %s", path, verdict).WithRemedy(remedy)
	}
	return nil
}
