// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// Absolute returns the bytes of a path as a request has it, absolute. It does not
// clean it: what ".." means after a link is the kernel's to say.
func (s *Service) Absolute(field, escaped string) (string, error) {
	p := wire.UnescapeName(escaped)
	if p == "" {
		return "", fault.InvalidField(field, "is empty")
	}
	if len(p) > wire.MaxPath {
		return "", fault.InvalidField(field, "has %d bytes, over the bound of %d", len(p), wire.MaxPath)
	}
	if strings.IndexByte(p, 0) >= 0 {
		return "", fault.InvalidField(field, "%q holds a NUL byte", message.Clip(escaped, 200))
	}
	if p[0] != '/' {
		p = s.o.Workspace() + "/" + p
	}
	return p, nil
}

// split cuts a path into its directory and its last name. A path that ends in
// no name ("/", "a/..") has none.
func split(p string) (dir, name string) {
	p = strings.TrimRight(p, "/")
	i := strings.LastIndexByte(p, '/')
	dir, name = p[:i+1], p[i+1:]
	if name == "." || name == ".." {
		return p, ""
	}
	if dir == "" {
		dir = "/"
	}
	return dir, name
}

// Open opens a path as a program of the view's user would, but through no magic
// link and, where the server's root is not "/", not out of it. It runs within Do.
func (s *Service) Open(p string, flags int) (int, error) {
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_NO_MAGICLINKS,
	}
	if flags&unix.O_PATH == 0 { // openat2 refuses the two together
		how.Flags |= unix.O_NOCTTY
	}
	at := unix.AT_FDCWD
	if s.o.Dir != "/" {
		root, err := unix.Open(s.o.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		defer unix.Close(root)
		at = root
		how.Resolve |= unix.RESOLVE_IN_ROOT
	}
	return dirs.Openat2(at, p, how)
}

// openDir opens the directory of a path for use with the *at calls, and refuses
// one on a pseudo file system: there names are the kernel's, and its links
// lead to what the agent itself has open.
func (s *Service) openDir(p string) (int, error) {
	fd, err := s.Open(p, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	if err := dirs.CheckStorage(fd); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// shown is a path as results and messages have it: clean and escaped.
func shown(p string) string { return wire.EscapeName(path.Clean(p)) }
