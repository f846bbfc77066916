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
	// muteAfter is how many reads of the queue have a write to one file in them before
	// it is muted, which itself costs the server some 10 µs.
	muteAfter = 2
	// maxMutedEach and maxMuted bound the muted files of a sandbox and of all: to begin a
	// window may cost some 0.5 µs for each of them.
	maxMutedEach = 16
	maxMuted     = 512
)

// muted counts what is muted of a source; the group's muting guards it.
type muted struct {
	files int
	epoch int // in which they were; in any other they are not any more
}

// hushLocked mutes the file of a record, booked in all windows, if it was written to before
// and all windows know of that.
func (s *Source) hushLocked(r *record) {
	if !r.has(unix.FAN_MODIFY) || r.target == nil || len(s.watches) > 0 || len(s.trackers) == 0 {
		return
	}
	youngest := s.trackers[len(s.trackers)-1].window.nodes[string(r.target)]
	if youngest == nil {
		return
	}
	if youngest.writes++; youngest.writes < muteAfter {
		return
	}
	youngest.writes = 0
	if s.mutedEnough() {
		return
	}
	for _, t := range s.trackers {
		if n := t.window.nodes[string(r.target)]; n == nil || n.content&unix.FAN_MODIFY == 0 {
			return
		}
	}
	s.mute(string(r.target))
}

// mute has the kernel ignore writes to a file of one name: of several, the windows know one
// that was used, and have to hear of another. A name that it gets later is told by itself. The
// file keeps no memory for it: when the kernel forgets its inode, it is not muted any more.
func (s *Source) mute(key string) {
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
		s.muteOpen(fd)
	})
}

// mutedEnough reports whether the bounds are reached.
func (s *Source) mutedEnough() bool {
	s.g.muting.Lock()
	defer s.g.muting.Unlock()
	return s.mutedEnoughLocked()
}

func (s *Source) mutedEnoughLocked() bool {
	g := s.g
	if s.muted.epoch != g.epoch {
		s.muted = muted{epoch: g.epoch}
	}
	return s.muted.files >= maxMutedEach || g.muted >= maxMuted
}

func (s *Source) muteOpen(fd int) {
	g := s.g
	g.muting.Lock()
	defer g.muting.Unlock()
	if s.mutedEnoughLocked() { // others mute, too, since it was asked
		return
	}
	// The kernel marks nothing by a descriptor of this kind, but by the link to what it is open on.
	err := unix.FanotifyMark(g.fd, unix.FAN_MARK_ADD|unix.FAN_MARK_IGNORE_SURV|unix.FAN_MARK_EVICTABLE,
		unix.FAN_MODIFY, unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd))
	if err == nil {
		s.muted.files++
		g.muted++
	}
}

// unmuteLocked has the kernel tell of all writes again, if any of the source's are muted:
// to all sources, in one call. It fails where a write might go untold.
func (s *Source) unmuteLocked() error {
	g := s.g
	g.muting.Lock()
	defer g.muting.Unlock()
	if s.muted.files == 0 || s.muted.epoch != g.epoch {
		return nil
	}
	// Marks of single files are for muting alone.
	if err := unix.FanotifyMark(g.fd, unix.FAN_MARK_FLUSH, 0, unix.AT_FDCWD, "/"); err != nil {
		return err
	}
	g.epoch++
	g.muted = 0
	return nil
}

// forgetMuted counts the source's muted files no more.
func (s *Source) forgetMuted() {
	g := s.g
	g.muting.Lock()
	defer g.muting.Unlock()
	if s.muted.epoch == g.epoch {
		g.muted -= s.muted.files
	}
	s.muted = muted{}
}
