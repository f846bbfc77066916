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

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Contents says what a data base holds.
type Contents struct {
	// Made is false for a missing file, an empty one, or one that was never finished.
	Made bool
	// ID is of the installation; "": it has none yet.
	ID string
	// Disks: there are sandboxes, snapshots or volumes, which all have something in a
	// store of layers.
	Disks bool
}

// Look returns what the data base at path holds, and changes nothing. The file must not be open
// elsewhere. What Open refuses is refused with the same error.
func Look(ctx context.Context, path string) (Contents, error) {
	file, err := filepath.Abs(path)
	if err != nil {
		return Contents{}, err
	}
	s := newStore(file, Options{})
	c, err := s.contents(ctx)
	if err != nil {
		return Contents{}, s.openError(ctx, err, file)
	}
	return c, nil
}

func (s *Store) contents(ctx context.Context) (c Contents, err error) {
	switch info, err := os.Stat(s.file); {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return c, err
	case !info.Mode().IsRegular():
		return c, fault.New(fault.Unavailable, "%s is not a regular file", s.file).
			WithRemedy("choose another data directory, or move it away")
	}
	_, latest, err := migrations(&s.dialect)
	if err != nil {
		return c, err
	}
	db, err := pool(s.file, "query_only(1)")
	if err != nil {
		return c, err
	}
	defer func() { _ = db.Close() }()
	version, err := inspect(ctx, db, s.file, latest)
	if err != nil || version == 0 {
		return c, err
	}
	c.Made = true
	for _, table := range []string{"sandboxes", "snapshots", "volumes"} {
		var rows int64
		// Older schemas have not all of them.
		query := "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = '" + table + "'"
		if err := db.QueryRowContext(ctx, query).Scan(&rows); err != nil {
			return c, err
		}
		if rows == 0 {
			continue
		}
		if err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+table+")").Scan(&rows); err != nil {
			return c, err
		}
		c.Disks = c.Disks || rows > 0
	}
	if version < identitySchema {
		return c, nil
	}
	err = db.QueryRowContext(ctx, "SELECT id FROM identity").Scan(&c.ID)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return c, err
}

// identitySchema is the first that has the table of it.
const identitySchema = 9

// identify writes the id of the installation into the data base, and to the disk, unless
// it is there. It is called before anybody else uses the data base; wal is its log.
func (s *Store) identify(id string, wal *os.File) error {
	var have string
	if err := s.writer.row("SELECT id FROM identity", nil, &have); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if have == id {
		return nil
	}
	for _, one := range []struct {
		text string
		args []any
	}{
		{s.dialect.beginUpdate, nil},
		{"DELETE FROM identity", nil},
		{"INSERT INTO identity (id) VALUES ($1)", []any{id}},
		{"COMMIT", nil},
	} {
		if _, err := s.writer.exec(one.text, one.args...); err != nil {
			return err // the connection is closed with the opening that failed
		}
	}
	if err := wal.Sync(); err != nil {
		return err
	}
	if err := s.held.Sync(); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(s.file))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// States reads the states of those of the sandboxes that have a record in the data base at path;
// one that a pool holds has none, and is [sandbox.Creating]. It changes nothing. The file must
// not be open elsewhere.
func States(ctx context.Context, path string, ids []sandbox.ID) (map[sandbox.ID]sandbox.State, error) {
	if c, err := Look(ctx, path); err != nil || !c.Made {
		return nil, err
	}
	db, err := pool(path, "query_only(1)")
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	states := make(map[sandbox.ID]sandbox.State)
	for _, id := range ids {
		var state string
		err := db.QueryRowContext(ctx, "SELECT state FROM sandboxes WHERE id = $1", string(id)).Scan(&state)
		if errors.Is(err, sql.ErrNoRows) {
			var last string
			err = db.QueryRowContext(ctx, "SELECT type FROM events WHERE sandbox = $1 ORDER BY seq DESC LIMIT 1", string(id)).Scan(&last)
			if state = string(sandbox.Creating); err == nil && last != string(sandbox.EventPrepared) {
				continue
			}
		}
		switch {
		case err == nil:
			states[id] = sandbox.State(state)
		case !errors.Is(err, sql.ErrNoRows):
			return nil, fault.Wrap(fault.Unavailable, err, "the records in %s cannot be read", path)
		}
	}
	return states, nil
}
