// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/fault"
)

// Own opens a directory of the user's, which it makes where it is missing, with what is missing above
// it. A missing one above is the user's where the one that it is in is, else root's. One that is there
// has to be the user's: nothing is ever given to him that was another's. field is the name of what asks.
// The caller closes it.
func Own(root int, field, path string, uid, gid int) (int, error) {
	path = strings.Trim(path, "/")
	fd, err := directory(root, path)
	if err == unix.ENOENT {
		fd, err = make1(root, path, uid, gid)
	}
	switch err {
	case nil:
	case unix.ENOTDIR:
		return -1, fault.InvalidField(field, "/%s is not a directory in the image, or below what is none", message.Clip(path, 200)).WithRemedy("choose another one")
	case unix.ELOOP:
		return -1, fault.InvalidField(field, "/%s leads through a link of the image, which is not followed", message.Clip(path, 200)).WithRemedy("choose the place that the link leads to, or another one")
	default:
		return -1, fault.InvalidField(field, "/%s cannot be made: %s", message.Clip(path, 200), message.Of(err)).WithRemedy("choose another one")
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		err = dirs.CheckStorage(fd)
	}
	switch {
	case err != nil:
		_ = unix.Close(fd)
		return -1, fault.InvalidField(field, "/%s is not a place for files: %s", message.Clip(path, 200), err).WithRemedy("choose another one")
	case int(st.Uid) != uid:
		_ = unix.Close(fd)
		return -1, fault.InvalidField(field, "/%s belongs to the user %d in the image, and stays so", message.Clip(path, 200), st.Uid).
			WithRemedy("choose a directory that is not there yet, or one of the user %d", uid)
	}
	return fd, nil
}

// Ordered returns the directories of an account in the order in which they are made: one that another is in comes first,
// so that it is the user's as well.
func Ordered(home, workdir string) []string {
	if strings.HasPrefix(home, workdir+"/") {
		return []string{workdir, home}
	}
	return []string{home, workdir}
}

// directory opens a directory beneath another one, through no link.
func directory(at int, path string) (int, error) {
	return dirs.Openat2(at, path, unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// make1 makes a directory and what is missing above it.
func make1(root int, path string, uid, gid int) (int, error) {
	at, err := directory(root, ".")
	if err != nil {
		return -1, err
	}
	names := strings.Split(path, "/")
	for i, name := range names {
		next, err := directory(at, name)
		if err == unix.ENOENT {
			next, err = makeIn(at, name, uid, gid, i == len(names)-1)
		}
		_ = unix.Close(at)
		if err != nil {
			return -1, err
		}
		at = next
	}
	return at, nil
}

// makeIn makes one directory. It is the user's if it is his own, or lies in one that is.
func makeIn(at int, name string, uid, gid int, own bool) (int, error) {
	var above unix.Stat_t
	if err := unix.Fstat(at, &above); err != nil {
		return -1, err
	}
	if err := dirs.CheckStorage(at); err != nil {
		return -1, unix.ENOTDIR
	}
	if err := unix.Mkdirat(at, name, 0o755); err != nil {
		return -1, err
	}
	fd, err := directory(at, name)
	if err != nil {
		return -1, err
	}
	if own || int(above.Uid) == uid {
		if err := unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH); err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
	}
	return fd, nil
}
