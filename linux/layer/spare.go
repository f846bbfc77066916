// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"sync"

	"golang.org/x/sys/unix"
)

// Bounds of what is emptied for reuse instead of being destroyed.
const (
	maxSpares       = 128
	maxSpareEntries = 512
	maxSpareBytes   = 4 << 20
)

// spares are subvolumes that were emptied for the next layer. The kernel commits
// a whole transaction for each subvolume with a quota that it destroys, some 10 ms
// of the machine's work that a sandbox with a handful of files is not worth.
// What had more in it is destroyed, and the kernel frees its blocks by itself.
type spares struct {
	dir int // emptied subvolumes, by names that were never an id's

	mu    sync.Mutex
	names []string
}

// openSpares finds what an earlier server kept.
func openSpares(top int) (*spares, error) {
	dir, err := ensureDir(top, "spare")
	if err != nil {
		return nil, err
	}
	s := &spares{dir: dir}
	if s.names, err = names(dir); err != nil {
		unix.Close(dir)
		return nil, err
	}
	return s, nil
}

// take moves a spare to name in dir. False: there is none. An error is the
// rename's, and the spare is kept.
func (s *spares) take(dir int, name string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.names) == 0 {
		return false, nil
	}
	spare := s.names[len(s.names)-1]
	if err := unix.Renameat2(s.dir, spare, dir, name, unix.RENAME_NOREPLACE); err != nil {
		return false, err
	}
	s.names = s.names[:len(s.names)-1]
	return true, nil
}

// keep empties the subvolume name in dir and makes it a spare. False: it has
// too much in it, or there are spares enough, and it is as it was.
func (s *spares) keep(dir int, name string) (bool, error) {
	s.mu.Lock()
	full := len(s.names) >= maxSpares
	s.mu.Unlock()
	if full {
		return false, nil
	}
	fd, err := openDir(dir, name)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	// What snapshots still hold of it stays counted to it: the next layer would
	// begin with less than its limit.
	if held, err := wasSnapshotted(fd); held || err != nil {
		return false, err
	}
	room := room{entries: maxSpareEntries, bytes: maxSpareBytes}
	if fits, err := room.fits(fd, 0); err != nil || !fits {
		return false, err
	}
	entries, err := names(fd)
	if err != nil {
		return false, err
	}
	for _, entry := range entries {
		if err := removeTree(fd, entry); err != nil {
			return false, err
		}
	}
	if err := unmark(fd); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := unix.Renameat2(dir, name, s.dir, name, unix.RENAME_NOREPLACE); err != nil {
		return false, err
	}
	s.names = append(s.names, name)
	return true, nil
}

func (s *spares) close() { unix.Close(s.dir) }

// room is what a tree may hold to be worth emptying.
type room struct {
	entries int
	bytes   int64
}

// fits counts what is below dir, and stops when it is too much or too deep.
func (r *room) fits(dir, depth int) (bool, error) {
	if depth > maxDepth {
		return false, nil
	}
	entries, err := names(dir)
	if err != nil {
		return false, err
	}
	if r.entries -= len(entries); r.entries < 0 {
		return false, nil
	}
	for _, name := range entries {
		var st unix.Stat_t
		if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return false, err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if r.bytes -= st.Blocks * 512; r.bytes < 0 {
				return false, nil
			}
			continue
		}
		fd, err := openDir(dir, name)
		if err != nil {
			return false, err
		}
		fits, err := r.fits(fd, depth+1)
		unix.Close(fd)
		if !fits || err != nil {
			return fits, err
		}
	}
	return true, nil
}
