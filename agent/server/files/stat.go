// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/wire"
)

// describe makes the record of a file out of its stat. Path and Target are the caller's.
func describe(name string, st *unix.Stat_t) wire.FileInfo {
	fi := wire.FileInfo{
		Name: wire.EscapeName(name), Size: st.Size, Mode: st.Mode & 0o7777,
		Mod: time.Unix(st.Mtim.Unix()).UTC(), UID: st.Uid, GID: st.Gid,
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		fi.Type = wire.File
	case unix.S_IFDIR:
		fi.Type, fi.Size = wire.Dir, 0
	case unix.S_IFLNK:
		fi.Type = wire.Symlink
	default:
		fi.Type, fi.Size = wire.Other, 0
	}
	return fi
}

// describeAt is describe for a name in a directory, which it does not follow. It
// runs within Do.
func describeAt(dir int, name string) (wire.FileInfo, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return wire.FileInfo{}, err
	}
	fi := describe(name, &st)
	if fi.Type == wire.Symlink {
		var b [unix.PathMax]byte
		if n, err := unix.Readlinkat(dir, name, b[:]); err == nil {
			fi.Target = wire.EscapeName(string(b[:n]))
		}
	}
	return fi, nil
}

// kind names in words what is neither a regular file nor a directory.
func kind(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return "a fifo"
	case unix.S_IFSOCK:
		return "a socket"
	case unix.S_IFCHR, unix.S_IFBLK:
		return "a device"
	case unix.S_IFLNK:
		return "a link"
	case unix.S_IFDIR:
		return "a directory"
	}
	return "no regular file"
}

// baseOf is the name that results show for a path.
func baseOf(p string) string {
	_, name := split(p)
	if name == "" {
		return "/"
	}
	return name
}

// Stat tells what a name is, and follows no link.
func (s *Service) Stat(c *call.Conn, req *wire.Request) error {
	v, err := s.o.View(req.User)
	if err != nil {
		return err
	}
	p, err := s.Absolute("path", req.Path)
	if err != nil {
		return err
	}
	var fi wire.FileInfo
	v.Do(func() { fi, err = s.stat(p) })
	if err != nil {
		return fileFault(v, "stat", p, err)
	}
	return c.Answer(fi)
}

// stat runs within Do.
func (s *Service) stat(p string) (wire.FileInfo, error) {
	dir, name := split(p)
	fd, err := s.openDir(dir)
	if err != nil {
		return wire.FileInfo{}, err
	}
	defer unix.Close(fd)
	at := name
	if name == "" {
		at, name = ".", baseOf(shown(p))
	}
	fi, err := describeAt(fd, at)
	if err == nil && p[len(p)-1] == '/' && fi.Type != wire.Dir {
		if fi.Type != wire.Symlink {
			return fi, unix.ENOTDIR
		}
	}
	fi.Name, fi.Path = wire.EscapeName(name), shown(p)
	return fi, err
}
