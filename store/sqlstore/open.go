// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"

	"sandpit.dev/fault"
)

// Options of a store.
type Options struct {
	// Path is the data base's file, made if it is missing, in a directory that
	// exists. Two files of the same name with -wal and -shm after it stand
	// beside it; all three belong together and are readable by the owner only.
	Path   string
	Logger *slog.Logger // nil: silent
}

// busyTimeout is for a program that looks into the file beside us; our own
// writers take turns before SQLite sees them.
const busyTimeout = "5000" // milliseconds

// Open opens or makes the data base, brings its schema up to date and begins to
// flush commits to the disk; [Store.Close] ends that. A file that is damaged, of
// another program, or of a newer sandpit is Unavailable and is left as it is.
// ctx bounds the opening only.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	file, err := filepath.Abs(o.Path)
	if err != nil || o.Path == "" {
		return nil, fault.Wrap(fault.Invalid, err, "the data base has no file name")
	}
	s := &Store{
		dialect: sqliteDialect(), logger: o.Logger,
		turn: make(chan struct{}, 1), views: make(chan struct{}, readers), closing: make(chan struct{}),
	}
	s.turn <- struct{}{}
	for range readers {
		s.views <- struct{}{}
	}
	if err := s.open(ctx, file); err != nil {
		return nil, s.openError(ctx, err, file)
	}
	return s, nil
}

func (s *Store) openError(ctx context.Context, err error, file string) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	code, msg := s.dialect.code(err)
	if _, ok := asSQLite(err); !ok {
		code, msg = fault.Unavailable, "the data base cannot be opened"
	}
	return fault.Wrap(code, err, "%s: %s", file, msg).
		WithRemedy("look after the file, put a copy in its place, or move it away to begin anew")
}

func (s *Store) open(ctx context.Context, file string) (err error) {
	all, latest, err := migrations(&s.dialect)
	if err != nil {
		return err
	}
	if err := makeFile(file); err != nil {
		return err
	}
	version, err := look(ctx, file, latest)
	if err != nil {
		return err
	}
	if err := onlyOwner(file); err != nil {
		return err
	}
	if s.writeDB, err = pool(file, 2, "synchronous(NORMAL)", "wal_autocheckpoint(0)", "journal_mode(WAL)"); err != nil {
		return err
	}
	var keeper *conn
	defer func() {
		if err == nil {
			return
		}
		for _, c := range []*conn{s.writer, keeper} {
			if c != nil {
				c.close()
			}
		}
		_ = s.writeDB.Close()
	}()
	if version < latest {
		if err := migrate(ctx, s.writeDB, all); err != nil {
			return err
		}
	}
	if s.writer, err = openConn(ctx, s.writeDB); err != nil {
		return err
	}
	var mode string
	if err := s.writer.row("PRAGMA journal_mode", nil, &mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fault.New(fault.Unavailable, "%s: the file system cannot hold a write-ahead log", file).
			WithRemedy("choose a data directory on a local file system")
	}
	// This connection stays open all the time, so that SQLite never removes the
	// log's file, which we hold open to flush it.
	if keeper, err = openConn(ctx, s.writeDB); err != nil {
		return err
	}
	if err := keeper.row("SELECT COUNT(*) FROM sqlite_master", nil, new(int64)); err != nil {
		return err
	}
	wal, err := os.OpenFile(file+"-wal", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if s.readDB, err = pool(file, readers, "query_only(1)"); err != nil {
		return errors.Join(err, wal.Close())
	}
	s.syncer = newSyncer(fileFlush(wal), s.walCheckpoint(keeper, hugeLog), func() {
		keeper.close()
		_ = wal.Close() // flushed already, and no lock hangs on this file
	}, s.logger)
	s.syncer.start()
	return nil
}

// look inspects the file over a connection that cannot write.
func look(ctx context.Context, file string, latest int64) (int64, error) {
	db, err := pool(file, 1, "query_only(1)")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return inspect(ctx, db, file, latest)
}

// pool makes a pool of connections; it opens none yet.
func pool(file string, most int, pragmas ...string) (*sql.DB, error) {
	q := url.Values{"_pragma": append([]string{"busy_timeout(" + busyTimeout + ")", "foreign_keys(1)"}, pragmas...), "_dqs": {"0"}}
	u := url.URL{Scheme: "file", Path: file, RawQuery: q.Encode()}
	connector, err := sqlite.NewConnector(u.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db, nil
}

// makeFile makes the file before SQLite does, which would let others read it.
func makeFile(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fault.New(fault.Unavailable, "%s is not a regular file", file).
			WithRemedy("choose another data directory, or move it away")
	}
	return nil
}

// onlyOwner takes everyone else's rights to a file of ours away. SQLite gives
// the files that it makes beside it the same rights.
func onlyOwner(file string) error {
	for _, name := range []string{file, file + "-wal", file + "-shm"} {
		err := os.Chmod(name, 0o600)
		if err != nil && (name == file || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}
