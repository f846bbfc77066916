// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// pause is how long a sandbox is not watched that changes files faster than that can be read.
const pause = time.Second

// errPaused is why changes are missing that a sandbox made during its pause.
var errPaused = errors.New("the sandbox changed files faster than they can be told")

// mark is the kernel's mark on a source's overlay. The reader takes its lock, too, and
// the lock is held for one system call that waits for no file system.
type mark struct {
	mu     sync.Mutex
	set    bool
	paused time.Time // until then it must not be set; zero where there is no pause
}

// listenLocked has the kernel tell of the overlay, and keeps what it tells. It fails with
// errPaused during a pause. Where one is over, all that were open in it hear of that.
func (s *Source) listenLocked(now time.Time) error {
	resumed, err := s.addMark(now)
	if resumed {
		s.loseLocked(errPaused, 1)
	}
	if err != nil {
		return err
	}
	s.openBacklog()
	return nil
}

func (s *Source) addMark(now time.Time) (resumed bool, err error) {
	m := &s.mark
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case now.Before(m.paused):
		return false, errPaused
	case m.set:
		return false, nil
	}
	err = s.fanotifyMark(unix.FAN_MARK_ADD)
	switch {
	case err == nil:
		resumed = !m.paused.IsZero()
		m.set, m.paused = true, time.Time{}
		return resumed, nil
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EXDEV), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EINVAL):
		return false, fault.Wrap(fault.Unsupported, err, "changed files cannot be told: the overlay cannot be watched").
			WithRemedy("mount it with index=on,nfs_export=on, on Linux 6.6 or later")
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.ENOMEM):
		return false, fault.Wrap(fault.Exhausted, err, "changed files cannot be told: the kernel has no room for a watch")
	}
	return false, fault.Wrap(fault.Internal, err, "the overlay cannot be watched")
}

func (s *Source) removeMark() {
	s.mark.mu.Lock()
	defer s.mark.mu.Unlock()
	s.mark.removeLocked(s)
}

func (m *mark) removeLocked(s *Source) {
	if !m.set {
		return
	}
	m.set = false
	if err := s.fanotifyMark(unix.FAN_MARK_REMOVE); err != nil && !errors.Is(err, unix.ENOENT) {
		s.g.log.Warn("cannot stop watching an overlay", "error", err)
	}
}

// pause ends the events of the source, and forgets those that are queued. The caller
// holds the group's reading; the source's own lock may be held for long.
func (s *Source) pause(now time.Time) {
	m := &s.mark
	m.mu.Lock()
	m.removeLocked(s)
	m.paused = now.Add(pause)
	m.mu.Unlock()
	g := s.g
	g.mu.Lock()
	s.lose(errPaused, 1)
	s.backlog.open = false
	g.mu.Unlock()
	g.wakeExpiry()
}

// look reports the mark.
func (m *mark) look() (set, paused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.set, !m.paused.IsZero()
}

// sweepLocked takes the mark away where it was not needed for the linger time, and sets it
// again where a pause is over. It reports whether that is still to come.
func (s *Source) sweepLocked(now time.Time) (more bool) {
	set, paused := s.mark.look()
	switch {
	case s.closed:
		return false
	case s.busyLocked():
		return paused && s.listenLocked(now) != nil
	case set && now.Sub(s.idleSince) >= s.g.linger:
		s.removeMark()
		return false
	}
	return set
}

func (s *Source) fanotifyMark(flag uint) error {
	conn, err := s.root.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := conn.Control(func(root uintptr) {
		err = unix.FanotifyMark(s.g.fd, flag|unix.FAN_MARK_FILESYSTEM, watched, int(root), "")
	}); cerr != nil {
		return cerr
	}
	return err
}
