// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
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
	// Path is the data base's file, created if it is missing, in a directory that exists. A file
	// of the same name with -wal after it stands beside it; both belong together and only their
	// owner can read them. They are locked against others until the store is closed.
	Path   string
	Logger *slog.Logger // nil: silent
	// Reserve is how many bytes of the disk are held for commits of a full disk, in the
	// log's file and as much in the data base's. 0: 16 MiB.
	Reserve int64
	// ID is of the installation, and is kept in the data base, in place of any other; see
	// [Look]. "": it is left as it is.
	ID string
}

const defaultReserve = 16 << 20

// busyTimeout is for a program that looks into the file when we open it; our own
// writers take turns before SQLite sees them.
const busyTimeout = "5000" // milliseconds

// exclusive has the file locked once, for all connections of this process, and what they
// share about the log kept in memory: by default a commit takes and returns six locks in a
// file beside it.
const exclusive = "unix-excl"

// Open opens or makes the data base, brings its schema up to date and begins to
// flush commits to the disk; [Store.Close] ends that. A file that is damaged, of
// another program, or of a newer sandpit is Unavailable and is left as it is.
// ctx bounds the opening only.
func Open(ctx context.Context, o Options) (*Store, error) {
	file, err := filepath.Abs(o.Path)
	if err != nil || o.Path == "" {
		return nil, fault.Wrap(fault.Invalid, err, "the data base has no file name")
	}
	s := newStore(file, o)
	if err := s.open(ctx, file, o); err != nil {
		return nil, s.openError(ctx, err, file)
	}
	return s, nil
}

func newStore(file string, o Options) *Store {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{
		file: file, checkAtOpen: checkAtOpen, dialect: sqliteDialect(), logger: o.Logger,
		turn: make(chan struct{}, 1), views: make(chan struct{}, readers), closing: make(chan struct{}),
	}
	s.turn <- struct{}{}
	for range readers {
		s.views <- struct{}{}
	}
	return s
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
	if code == fault.Full {
		return fault.NoSpace(fault.RecordsDisk, err, "%s: %s", file, msg).
			WithRemedy("free space on the file system of the data directory")
	}
	return fault.Wrap(code, err, "%s: %s", file, msg).
		WithRemedy("look after the file, put a copy in its place, or move it away to begin anew")
}

func (s *Store) open(ctx context.Context, file string, o Options) (err error) {
	all, latest, err := migrations(&s.dialect)
	if err != nil {
		return err
	}
	if err := makeFile(file); err != nil {
		return err
	}
	// This file is open for as long as any connection is: with the first that a process
	// closes of a file, it loses all its locks on it.
	if s.held, err = os.OpenFile(file, os.O_RDWR, 0); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = s.held.Close()
		}
	}()
	version, err := look(ctx, file, latest)
	if err != nil {
		return err
	}
	if err := onlyOwner(file); err != nil {
		return err
	}
	checked := version == 0
	if !checked {
		if checked, err = s.checkNow(ctx); err != nil {
			return err
		}
	}
	// Only a file without tables takes auto_vacuum: before the mode of the journal, which
	// writes the first page.
	writing := []string{"auto_vacuum(INCREMENTAL)", "synchronous(NORMAL)", "wal_autocheckpoint(0)", "journal_mode(WAL)", fmt.Sprintf("journal_size_limit(%d)", longLog)}
	if s.toWrite, err = connector(file, writing...); err != nil {
		return err
	}
	if s.toRead, err = connector(file, "query_only(1)"); err != nil {
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
	}()
	if version < latest {
		db := sql.OpenDB(s.toWrite)
		if err := errors.Join(migrate(ctx, db, all), db.Close()); err != nil {
			return err
		}
	}
	if s.writer, err = s.dialect.openConn(ctx, s.toWrite); err != nil {
		return err
	}
	if err := s.convert(); err != nil {
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
	if keeper, err = s.dialect.openConn(ctx, s.toWrite); err != nil {
		return err
	}
	if err := keeper.row("SELECT COUNT(*) FROM sqlite_master", nil, new(int64)); err != nil {
		return err
	}
	wal, err := os.OpenFile(file+"-wal", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if o.ID != "" {
		if err := s.identify(o.ID, wal); err != nil {
			_ = wal.Close()
			return err
		}
	}
	s.reserve = newReserve(filepath.Dir(file), cmp.Or(o.Reserve, defaultReserve), s.held, wal, s.logger)
	s.reserve.look()
	s.syncer = newSyncer(fileFlush(wal), s.reserve.look, logIsLong(wal), s.tidy(keeper), func() {
		keeper.close()
		_ = wal.Close() // flushed already, and no lock hangs on this file
	}, s.logger)
	s.syncer.start()
	var cctx context.Context
	cctx, s.endCheck = context.WithCancel(context.Background())
	if !checked {
		s.checks.Go(func() { s.checkLater(cctx) })
	}
	return nil
}

// look inspects the file over a connection that cannot write.
func look(ctx context.Context, file string, latest int64) (int64, error) {
	db, err := pool(file, "query_only(1)")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return inspect(ctx, db, file, latest)
}

// connector makes what opens connections; it opens none yet.
func connector(file string, pragmas ...string) (driver.Connector, error) {
	q := url.Values{"_pragma": append([]string{"busy_timeout(" + busyTimeout + ")", "foreign_keys(1)"}, pragmas...), "_dqs": {"0"}, "vfs": {exclusive}}
	u := url.URL{Scheme: "file", Path: file, RawQuery: q.Encode()}
	return sqlite.NewConnector(u.String())
}

// pool makes a pool of one connection, for what is done once.
func pool(file string, pragmas ...string) (*sql.DB, error) {
	c, err := connector(file, pragmas...)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(1)
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

// onlyOwner takes everyone else's rights to a file of ours away. SQLite sets the same rights for
// the files that it makes beside it.
func onlyOwner(file string) error {
	for _, name := range []string{file, file + "-wal", file + "-shm"} {
		err := os.Chmod(name, 0o600)
		if err != nil && (name == file || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}
