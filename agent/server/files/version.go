// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// versionOf names what a file holds: two looks at a file that have the same version saw the same content, if the first was
// stable. It is made of what the kernel changes with each write: which inode it is, its size, and to the nanosecond the times of
// its last change, of which the second cannot be set. The device is left out, as its number is another one after a
// restart. It is a hash so that it tells nothing of these.
func versionOf(st *unix.Stat_t) string {
	var b [48]byte
	for i, n := range [...]int64{int64(st.Ino), st.Size, int64(st.Mtim.Sec), int64(st.Mtim.Nsec), int64(st.Ctim.Sec), int64(st.Ctim.Nsec)} { //nolint:unconvert // 32 bits elsewhere
		binary.LittleEndian.PutUint64(b[8*i:], uint64(n))
	}
	sum := sha256.Sum256(b[:])
	return hex.EncodeToString(sum[:wire.VersionBytes])
}

const (
	// longestTick is more than the time for which the clock of files stands still.
	longestTick = 25 * time.Millisecond
	// longestSecond is the same for a file system whose times are of whole seconds.
	longestSecond = 2500 * time.Millisecond
)

// stable reports whether any change of a file from now on gives it another version. The clock of files goes in
// ticks of some milliseconds, and what happens within the tick of the last change has the same time.
func stable(st *unix.Stat_t) bool {
	changed := time.Unix(st.Ctim.Unix())
	age := time.Since(changed)
	if st.Ctim.Nsec == 0 {
		return age > longestSecond
	}
	if age > longestTick {
		return true
	}
	var now unix.Timespec
	return unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) == nil && time.Unix(now.Unix()).After(changed)
}

// stableVersion returns the version of a file, which it looks at again, a tick long, until that is stable. That of a file that changes
// all the time is one that it never has again. A regular file alone has a version.
func stableVersion(st *unix.Stat_t, look func(*unix.Stat_t) error) (string, error) {
	const pause = time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		switch {
		case st.Mode&unix.S_IFMT != unix.S_IFREG:
			return "", nil
		case stable(st):
			return versionOf(st), nil
		case waited >= longestTick:
			var b [wire.VersionBytes]byte
			_, _ = unix.Getrandom(b[:], 0) // for so few bytes it does not fail
			return hex.EncodeToString(b[:]), nil
		}
		time.Sleep(pause)
		if err := look(st); err != nil {
			return "", err
		}
	}
}

// unmetError: what a path finally leads to is not as the condition of a call says.
type unmetError struct{ path string }

func (e *unmetError) Error() string { return "the condition is not met" }

// meets checks what has a name in a directory, and the path, against the condition of a call. It runs within Do.
func meets(c *wire.Condition, dir int, name, path string) error {
	if c == nil {
		return nil
	}
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		if c.Absent {
			return nil
		}
		return &unmetError{path}
	case err != nil:
		return err
	case c.Absent:
		return &unmetError{path}
	case c.Any, st.Mode&unix.S_IFMT == unix.S_IFREG && slices.Contains(c.Versions, versionOf(&st)):
		return nil
	}
	return &unmetError{path}
}

// checkCondition checks the form of a condition.
func checkCondition(c *wire.Condition) error {
	switch {
	case c == nil:
		return fault.New(fault.Malformed, "the call does not say on which condition")
	case len(c.Versions) > wire.MaxVersions:
		return fault.InvalidField("versions", "are %d, more than %d", len(c.Versions), wire.MaxVersions)
	case c.Absent && (c.Any || len(c.Versions) > 0), c.Any && len(c.Versions) > 0, !c.Absent && !c.Any && len(c.Versions) == 0:
		return fault.New(fault.Malformed, "the call has no condition, or several")
	}
	return nil
}

// tellUnmet makes of an unmetError what the caller is told: that a file is not as the condition says, and which version it
// has now. Other errors stay as they are.
func (s *Service) tellUnmet(v view.View, c *wire.Condition, err error) error {
	is, ok := errors.AsType[*unmetError](err)
	if !ok {
		return err
	}
	p := is.path
	var st unix.Stat_t
	look := func(st *unix.Stat_t) (err error) {
		v.Do(func() { _, *st, err = s.stat(p) })
		return err
	}
	now := ""
	if err = look(&st); err == nil {
		now, err = stableVersion(&st, look)
	}
	at := message.Clip(shown(p), 400)
	e := fault.New(fault.PreconditionFailed, "%q is another version than the one that was asked for; it is as it was", at).
		WithRemedy("read it again, and send what should be in it then with the version that it has now")
	switch {
	case c.Absent:
		e = fault.New(fault.PreconditionFailed, "%q exists already; it is as it was", at).WithRemedy("choose another name, or replace it by its version")
	case err != nil:
		e = fault.New(fault.PreconditionFailed, "there is no %q any more, of which a version was asked for; nothing was changed", at).
			WithRemedy("send it without a version, or on the condition that there is none, to make it anew")
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		e = fault.New(fault.PreconditionFailed, "%q is %s, which has no version; it is as it was", at, kind(st.Mode)).WithRemedy("send it without a version")
	}
	e.Version = now
	return e
}

// locks lets one call at a time look at a file and put another in its place: those on files of one name wait for
// each other, so that none of two that are to replace the same version is lost.
type locks struct {
	seed  maphash.Seed
	names [64]sync.Mutex
}

func (l *locks) of(name string) *sync.Mutex {
	return &l.names[maphash.String(l.seed, name)%uint64(len(l.names))]
}
