// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// recordedMark is on the store's top directory: a time, in nanoseconds of Unix time. What was
// made before it is on record.
const recordedMark = "trusted.sandpit.recorded"

// recordedSlack is how much older than it is the kernel may make a file's time, which it
// reads once in a tick of its own.
const recordedSlack = 10 * time.Millisecond

// persistRounds bounds how often Persist begins anew because something was made meanwhile.
const persistRounds = 3

// persistence is how far a store is on the disk.
type persistence struct {
	made      atomic.Int64 // layers and volumes, each counted when it is whole
	committed atomic.Int64 // of them surely on the disk
	recorded  int64        // what recordedMark was when the store was opened; 0: there was none
	last      int64        // what it is now; MarkRecorded's alone
}

// pending reports whether something was made that need not be on the disk yet.
func (p *persistence) pending() bool { return p.made.Load() != p.committed.Load() }

// Pending reports whether Persist has something to write.
func (s *Store) Pending() bool { return s.persistence.pending() }

// Persist brings the layers and volumes that were made so far to the disk, with their names and
// directories; the data of files only as far as it was written. Where nothing was made since the last
// time it does nothing. Call it before records are flushed: then none of them outlives a crash of
// the host without its disk.
func (s *Store) Persist() error {
	for range persistRounds {
		if !s.persistence.pending() {
			return nil
		}
		if err := s.commitAside(); err != nil {
			return failed(err, "the layers could not be written to the disk")
		}
	}
	return nil
}

// commitAside is commitAll without the store's lock: a commit lasts as long as the disk is busy.
func (s *Store) commitAside() error {
	leave, err := s.enter()
	if err != nil {
		return err
	}
	fd, err := openDir(s.layers, ".")
	s.syncing.Add(1)
	leave()
	defer s.syncing.Done()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return s.commitAll(fd)
}

// commitAll writes what was made, renamed and removed so far in the store, which dir is a
// directory of, to the disk.
func (s *Store) commitAll(dir int) (err error) {
	made := s.persistence.made.Load()
	if s.kind == Plain {
		err = unix.Fsync(dir)
	} else {
		err = commit(dir)
	}
	for err == nil {
		known := s.persistence.committed.Load()
		if known >= made || s.persistence.committed.CompareAndSwap(known, made) {
			break
		}
	}
	return err
}

// MarkRecorded notes that the record of everything made before at is on the disk. The note
// is on the disk with whatever is made later, or before that.
func (s *Store) MarkRecorded(at time.Time) error {
	mark := at.Add(-recordedSlack).UnixNano()
	if mark <= s.persistence.last { // the clock was set back
		return nil
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(mark))
	if err := unix.Fsetxattr(s.top, recordedMark, b[:], 0); err != nil && err != unix.EOPNOTSUPP {
		return failed(err, "the store cannot be marked")
	}
	s.persistence.last = mark
	return nil
}

// readRecorded reads the mark that an earlier server left.
func (s *Store) readRecorded() error {
	var b [8]byte
	switch n, err := unix.Fgetxattr(s.top, recordedMark, b[:]); {
	case err == unix.ENODATA || err == unix.EOPNOTSUPP:
	case err != nil:
		return failed(err, "the store's mark cannot be read")
	case n == len(b):
		s.persistence.recorded = int64(binary.LittleEndian.Uint64(b[:]))
		s.persistence.last = s.persistence.recorded
	}
	return nil
}

// Unrecorded reports whether the layer, the snapshot or the volume id was made, or given to
// somebody, after the last MarkRecorded of the servers before this one: a crash of the host can have
// taken its record. So it reports of a layer that an earlier version made before anybody asked
// for it. Ask of what no record mentions. What is not there was not.
func (s *Store) Unrecorded(id string) (bool, error) {
	if err := checkID(id); err != nil {
		return false, err
	}
	leave, err := s.enter()
	if err != nil {
		return false, err
	}
	defer leave()
	if ahead, err := s.madeAhead(id); ahead || err != nil {
		return ahead, err
	}
	if s.persistence.recorded == 0 {
		return false, nil
	}
	for _, place := range []struct {
		dir     int
		changed bool // a layer may be older than the sandbox whose it is
	}{{s.layers, true}, {s.snapshots.at(id).dir, false}, {s.volumes, false}} {
		made, err := s.madeAt(place.dir, id, place.changed)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return false, failed(err, "the age of %s cannot be read", id)
		}
		return made > s.persistence.recorded, nil
	}
	return false, nil
}

// madeAt returns when the directory name was made in dir, or when it was changed last.
func (s *Store) madeAt(dir int, name string, changed bool) (int64, error) {
	var st unix.Statx_t
	if err := unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME|unix.STATX_CTIME, &st); err != nil {
		return 0, err
	}
	at := st.Ctime
	if !changed {
		fd, err := openDir(dir, name)
		if err != nil {
			return 0, err
		}
		defer unix.Close(fd)
		if s.kind != Plain && isSubvolume(fd) { // the inode has the time of what it is a copy of
			return subvolumeMade(fd)
		}
		if st.Mask&unix.STATX_BTIME == 0 {
			return 0, nil
		}
		at = st.Btime
	}
	return at.Sec*int64(time.Second) + int64(at.Nsec), nil
}
