// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/wire"
)

// describe makes the record of a file out of its stat. Path and Target are the caller's.
func describe(name string, st *unix.Stat_t) wire.FileInfo {
	fi := wire.FileInfo{
		Name: wire.EscapeName(name), Size: st.Size, Mode: st.Mode & 0o7777,
		Mod: time.Unix(st.Mtim.Unix()).UTC(), UID: st.Uid, GID: st.Gid,
	}
	fi.Type = typeOf(st.Mode)
	if fi.Type == wire.Dir || fi.Type == wire.Other {
		fi.Size = 0
	}
	return fi
}

// describeAt is describe for a name in a directory, which it does not follow. It
// runs within Do.
func (s *Service) describeAt(dir int, name string) (fi wire.FileInfo, st unix.Stat_t, err error) {
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fi, st, err
	}
	fi = describe(name, &st)
	if fi.Type == wire.Symlink {
		s.readTarget(dir, name, &fi)
	}
	return fi, st, nil
}

// readTarget reads where a link of a directory leads, and what is there for the user: through no link of the
// kernel's, and without opening it. It runs within Do.
func (s *Service) readTarget(dir int, name string, fi *wire.FileInfo) {
	var b [unix.PathMax]byte
	if n, err := unix.Readlinkat(dir, name, b[:]); err == nil {
		fi.Target = wire.EscapeName(string(b[:n]))
	}
	fd, err := s.openTarget(dir, name)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		fi.TargetType = typeOf(st.Mode)
	}
}

// openTarget opens, by its path alone, what a name of a directory finally leads to. It runs within Do.
func (s *Service) openTarget(dir int, name string) (int, error) {
	if s.o.Dir == "/" {
		return dirs.Openat2(dir, name, unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	}
	at, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", dir))
	if err != nil {
		return -1, err
	}
	return s.Open(strings.TrimPrefix(at, s.o.Dir)+"/"+name, unix.O_PATH)
}

// typeOf is the type of a file in words of the wire.
func typeOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return wire.File
	case unix.S_IFDIR:
		return wire.Dir
	case unix.S_IFLNK:
		return wire.Symlink
	}
	return wire.Other
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
	v, err := s.o.View(req.User, req.AsRoot)
	if err != nil {
		return err
	}
	p, err := s.Absolute("path", req.Path)
	if err != nil {
		return err
	}
	var fi wire.FileInfo
	var st unix.Stat_t
	look := func(seen *unix.Stat_t) (err error) {
		v.Do(func() { fi, *seen, err = s.stat(p) })
		return err
	}
	version := ""
	if err = look(&st); err == nil && req.Version {
		version, err = stableVersion(&st, look)
	}
	if err != nil {
		return fileFault(v, "stat", p, err)
	}
	fi.Version = version
	s.names(v).add(&fi)
	return c.Answer(fi)
}

// stat runs within Do.
func (s *Service) stat(p string) (fi wire.FileInfo, st unix.Stat_t, err error) {
	dir, name := split(p)
	fd, err := s.openDir(dir)
	if err != nil {
		return fi, st, err
	}
	defer unix.Close(fd)
	at := name
	if name == "" {
		at, name = ".", baseOf(shown(p))
	}
	fi, st, err = s.describeAt(fd, at)
	if err == nil && p[len(p)-1] == '/' && fi.Type != wire.Dir {
		if fi.Type != wire.Symlink {
			return fi, st, unix.ENOTDIR
		}
	}
	if err == nil && (fi.Type == wire.File || fi.Type == wire.Dir) {
		fi.Attributes = attributesAt(fd, at)
	}
	fi.Name, fi.Path = wire.EscapeName(name), shown(p)
	return fi, st, err
}
