// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"

	"sandpit.dev/fault"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// applicationID stands in the header of our SQLite files ("spit"), so that a
// data base of another program is never taken for an empty one of ours.
const applicationID = 0x73706974

// migrations reads the embedded files. Their SQL goes to goose as Go functions,
// since goose's own files have no place for a dialect's type names.
func migrations(d *dialect) (all []*goose.Migration, latest int64, err error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql") // in order
	if err != nil {
		return nil, 0, err
	}
	for _, name := range names {
		text, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, 0, err
		}
		number, _, _ := strings.Cut(path.Base(name), "_")
		if latest, err = strconv.ParseInt(number, 10, 64); err != nil {
			return nil, 0, fmt.Errorf("the migration %s has no number: %w", name, err)
		}
		text2 := d.types.Replace(string(text))
		all = append(all, goose.NewGoMigration(latest, &goose.GoFunc{
			RunTx: func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, text2)
				return err
			},
		}, nil))
	}
	return all, latest, nil
}

// inspect examines a data base before anything is written to it. It returns the schema's version,
// 0 for an empty file, and refuses a file that is not ours.
func inspect(ctx context.Context, db *sql.DB, file string, latest int64) (version int64, err error) {
	var app, tables int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return 0, err
	}
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master").Scan(&tables); err != nil {
		return 0, err
	}
	if app != applicationID {
		if app != 0 || tables > 0 {
			return 0, fault.New(fault.Unavailable, "%s is a data base of another program", file).
				WithRemedy("choose another data directory, or move that file away; nothing in it was changed")
		}
		return 0, nil
	}
	if tables == 0 {
		return 0, nil
	}
	// The version's table comes with the first migration, in one transaction
	// of goose's before it.
	if err := db.QueryRowContext(ctx, "SELECT COALESCE(MAX(version_id), 0) FROM "+goose.DefaultTablename).Scan(&version); err != nil {
		return 0, err
	}
	if version > latest {
		return 0, fault.New(fault.Unavailable, "%s has schema %d; this version of sandpit knows schemas up to %d", file, version, latest).
			WithRemedy("start the newer sandpit that wrote it; nothing in it was changed")
	}
	return version, nil
}

// migrate brings the schema up to date.
func migrate(ctx context.Context, db *sql.DB, all []*goose.Migration) error {
	if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, nil,
		goose.WithGoMigrations(all...),
		goose.WithDisableGlobalRegistry(true),
		goose.WithAllowOutofOrder(true), // branches number theirs apart, and none needs a later one
		goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}
