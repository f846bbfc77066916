// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

const (
	// Work is refused once the file system has less than littleRoom, and taken again
	// once it has enoughRoom.
	littleRoom = 8 << 20
	enoughRoom = 12 << 20
	ampleRoom  = 128 << 20
	// relieveLog, in pages (4 MB), is the length from which the log of a full disk is moved into the
	// data base by who commits next, and relieveFree is how many pages are free there then.
	relieveLog  = 1024
	relieveFree = 64
	// The rows of the reserve's table are 4 MB: pages for the records of 10,000 stops
	// and deletes, beside those that the deletes leave.
	reserveRows  = 64
	reserveBytes = 64 << 10
)

const (
	reserveCount = "SELECT COUNT(*) FROM reserve"
	reserveAdd   = "INSERT INTO reserve (data) VALUES ($1)"
	reserveUse   = "DELETE FROM reserve WHERE n = (SELECT MAX(n) FROM reserve)"
)

// reserve is room for commits of a disk that others have filled, for what ends and
// deletes. The log's file and the data base's own blocks beyond their ends, into which they grow
// without asking the file system for more: so the log takes commits, and can be moved into the data base with what
// it has when the disk fills up. Then it is written over. The pages of a table make room in the
// data base; see [Store.relieve].
type reserve struct {
	dir    string
	want   int64 // bytes beyond the end of each file
	logger *slog.Logger

	mu    sync.Mutex
	files []*held
	full  error // nil: there is room
	avail int64 // at the last look
	ready bool  // a look was taken
}

// held is a file with room beyond its end.
type held struct {
	file *os.File
	size int64 // at the last look: a file that is cut loses its room
	end  int64 // of the room
}

func newReserve(dir string, want int64, db, wal *os.File, logger *slog.Logger) *reserve {
	return &reserve{dir: dir, want: want, logger: logger, files: []*held{{file: wal}, {file: db}}}
}

func (r *reserve) room() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full
}

// ranOut notes that a write found no room.
func (r *reserve) ranOut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(unix.ENOSPC, 0)
}

// moved notes that the log was moved into the data base, whose file SQLite cuts then to
// what it needs.
func (r *reserve) moved() {
	r.mu.Lock()
	for _, f := range r.files {
		f.end = 0
	}
	r.mu.Unlock()
	r.look()
}

// relieve makes room for a commit while the disk is full. The caller has the turn.
func (s *Store) relieve(c *conn) error {
	var busy, pages, moved, free int64
	err := c.row("PRAGMA wal_checkpoint(PASSIVE)", nil, &busy, &pages, &moved)
	if err == nil && pages > relieveLog {
		err = c.row("PRAGMA wal_checkpoint(RESTART)", nil, &busy, &pages, &moved)
	}
	if err != nil {
		return err
	}
	s.reserve.moved()
	if err := c.row("PRAGMA freelist_count", nil, &free); err != nil || free >= relieveFree {
		return err
	}
	_, err = c.exec(reserveUse)
	return err
}

// ample reports whether there is so much room that others will not have filled it
// before the data base has grown by the reserve's table.
func (r *reserve) ample() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full == nil && r.avail >= ampleRoom
}

// refill puts back what was used of the reserve's table, while there is ample room.
func (s *Store) refill() error {
	if !s.reserve.ample() {
		return nil
	}
	if err := s.take(context.Background(), s.turn); err != nil {
		return nil
	}
	defer func() { s.turn <- struct{}{} }()
	if s.writer == nil {
		return nil // the next Update opens it, and the next look comes here again
	}
	var rows int64
	if err := s.writer.row(reserveCount, nil, &rows); err != nil {
		return err
	}
	for ; rows < reserveRows; rows++ {
		if _, err := s.writer.exec(reserveAdd, make([]byte, reserveBytes)); err != nil {
			return err
		}
	}
	return nil
}

// look sees to the reserve, and whether there is room beside it.
func (r *reserve) look() (room int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lacks error
	for _, f := range r.files {
		if err := f.hold(r.want); errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			lacks = err
		} else if err != nil && !r.ready {
			r.logger.Warn("the file system reserves no room for the records: where it is full, stop and delete may be refused", "file", f.file.Name(), "error", err)
		}
	}
	r.ready = true
	var fs unix.Statfs_t
	if err := unix.Statfs(r.dir, &fs); err != nil {
		return 0 // writing says what is wrong
	}
	avail := int64(fs.Bavail) * fs.Bsize //nolint:gosec // a disk has fewer bytes
	r.set(lacks, avail)
	if r.full != nil {
		return 0
	}
	return avail - enoughRoom
}

// set notes what a look found. The caller has mu.
func (r *reserve) set(lacks error, avail int64) {
	was := r.full != nil
	r.avail = avail
	switch {
	case lacks != nil || avail < littleRoom:
		r.full = fault.NoSpace(fault.RecordsDisk, lacks, "the disk that holds the records is nearly full: %d MB are free, and a reserve is for what ends and deletes", avail>>20).
			WithRemedy("free space on the file system of the data directory, or delete sandboxes; stop and delete are served")
	case avail >= enoughRoom:
		r.full = nil
	}
	switch is := r.full != nil; {
	case is && !was:
		r.logger.Warn("the disk that holds the records is nearly full: no work is begun, stop and delete are served", "dir", r.dir, "free", avail, "error", lacks)
	case !is && was:
		r.logger.Info("the disk that holds the records has room again", "dir", r.dir, "free", avail)
	}
}

// hold has the file own so many bytes beyond its end. It asks the file system only
// once half of them are used, or the file was cut.
func (f *held) hold(want int64) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size < f.size {
		f.end = 0
	}
	f.size = size
	if f.end >= size+want/2 {
		return nil
	}
	for {
		err := unix.Fallocate(int(f.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, size, want)
		if err == nil {
			f.end = size + want
		}
		if err != unix.EINTR {
			return err
		}
	}
}
