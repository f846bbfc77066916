// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// A database or a log is written to thousands of times, and each write costs its writer
// an event, 3 µs, that says again what every window knows. So the kernel is told not
// to queue the writes to such a file, until a window or a watch begins that has not heard
// of them. Everything else about the file is still told.
const (
	// ignoreAfter is how many reads of the queue have a write to one file in them before
	// it is ignored, which itself costs the server some 10 µs.
	ignoreAfter = 2
	// maxIgnoredEach and maxIgnored bound the ignored files of a sandbox and of all: to begin a
	// window may cost some 0.5 µs for each of them.
	maxIgnoredEach = 16
	maxIgnored     = 512
)

// ignored counts what is ignored of a source; the group's ignoring guards it.
type ignored struct {
	files int
	epoch int // in which they were; in any other they are not any more
}

// ignoreRepeatedLocked has the kernel ignore writes to the file of a record, booked in all windows, if it was written to before
// and all windows know of that.
func (s *Source) ignoreRepeatedLocked(r *record) {
	if !r.has(unix.FAN_MODIFY) || r.target == nil || len(s.watches) > 0 || len(s.trackers) == 0 {
		return
	}
	youngest := s.trackers[len(s.trackers)-1].window.nodes[string(r.target)]
	if youngest == nil {
		return
	}
	if youngest.writes++; youngest.writes < ignoreAfter {
		return
	}
	youngest.writes = 0
	if s.ignoredEnough() {
		return
	}
	for _, t := range s.trackers {
		if n := t.window.nodes[string(r.target)]; n == nil || n.content&unix.FAN_MODIFY == 0 {
			return
		}
	}
	s.ignore(string(r.target))
}

// ignore has the kernel ignore writes to a file of one name: of several, the windows know one
// that was used, and have to hear of another. A name that it gets later is told by itself. The
// file keeps no memory for it: when the kernel forgets its inode, it is not ignored any more.
func (s *Source) ignore(key string) {
	conn, err := s.root.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(root uintptr) {
		var h handle
		fd, err := h.open(int(root), key, unix.O_PATH|unix.O_NOFOLLOW)
		if err != nil {
			return // gone
		}
		defer unix.Close(fd)
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Nlink != 1 {
			return
		}
		s.ignoreOpen(fd)
	})
}

// ignoredEnough reports whether the bounds are reached.
func (s *Source) ignoredEnough() bool {
	s.g.ignoring.Lock()
	defer s.g.ignoring.Unlock()
	return s.ignoredEnoughLocked()
}

func (s *Source) ignoredEnoughLocked() bool {
	g := s.g
	if s.ignored.epoch != g.epoch {
		s.ignored = ignored{epoch: g.epoch}
	}
	return s.ignored.files >= maxIgnoredEach || g.ignored >= maxIgnored
}

func (s *Source) ignoreOpen(fd int) {
	g := s.g
	g.ignoring.Lock()
	defer g.ignoring.Unlock()
	if s.ignoredEnoughLocked() { // others ignore, too, since it was asked
		return
	}
	// The kernel marks nothing by a descriptor of this kind, but by the link to what it is open on.
	err := unix.FanotifyMark(g.fd, unix.FAN_MARK_ADD|unix.FAN_MARK_IGNORE_SURV|unix.FAN_MARK_EVICTABLE,
		unix.FAN_MODIFY, unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd))
	if err == nil {
		s.ignored.files++
		g.ignored++
	}
}

// stopIgnoringLocked has the kernel tell of all writes again, if any of the source's are ignored:
// to all sources, in one call. It fails where a write might go untold.
func (s *Source) stopIgnoringLocked() error {
	g := s.g
	g.ignoring.Lock()
	defer g.ignoring.Unlock()
	if s.ignored.files == 0 || s.ignored.epoch != g.epoch {
		return nil
	}
	// Marks of single files are for ignoring alone.
	if err := unix.FanotifyMark(g.fd, unix.FAN_MARK_FLUSH, 0, unix.AT_FDCWD, "/"); err != nil {
		return err
	}
	g.epoch++
	g.ignored = 0
	return nil
}

// forgetIgnored counts the source's ignored files no more.
func (s *Source) forgetIgnored() {
	g := s.g
	g.ignoring.Lock()
	defer g.ignoring.Unlock()
	if s.ignored.epoch == g.epoch {
		g.ignored -= s.ignored.files
	}
	s.ignored = ignored{}
}
