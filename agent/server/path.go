// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// absolute returns the bytes of a path as a request has it, absolute. It does not
// clean it: what ".." means after a link is the kernel's to say.
func (s *Server) absolute(field, escaped string) (string, error) {
	p := wire.UnescapeName(escaped)
	if p == "" {
		return "", fault.InvalidField(field, "is empty")
	}
	if len(p) > wire.MaxPath {
		return "", fault.InvalidField(field, "has %d bytes, over the bound of %d", len(p), wire.MaxPath)
	}
	if strings.IndexByte(p, 0) >= 0 {
		return "", fault.InvalidField(field, "%q holds a NUL byte", clip(escaped, 200))
	}
	if p[0] != '/' {
		p = s.o.Workspace + "/" + p
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

// errPseudo is a path on a file system that is not storage.
var errPseudo = errors.New("on a file system of the kernel's")

// open opens a path as a program of the view's user would, but through no magic
// link and, where the server's root is not "/", not out of it. It runs within Do.
func (s *Server) open(p string, flags int) (int, error) {
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
	return openat2(at, p, how)
}

// openat2 repeats what the kernel gives up for a rename that came in between.
func openat2(at int, p string, how unix.OpenHow) (int, error) {
	for range 100 {
		fd, err := unix.Openat2(at, p, &how)
		if err != unix.EAGAIN && err != unix.EINTR {
			return fd, err
		}
	}
	return -1, unix.EAGAIN
}

// openDir opens the directory of a path for use with the *at calls, and refuses
// one on a pseudo file system: there names are the kernel's, and its links
// lead to what the agent itself has open.
func (s *Server) openDir(p string) (int, error) {
	fd, err := s.open(p, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	if err := checkStorage(fd); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// checkStorage refuses what lies on a file system of the kernel's own.
func checkStorage(fd int) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return err
	}
	switch int64(st.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
		unix.DEVPTS_SUPER_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
		unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC, unix.BPF_FS_MAGIC, unix.SELINUX_MAGIC, unix.SMACK_MAGIC,
		unix.BINFMTFS_MAGIC, unix.NSFS_MAGIC, unix.PIPEFS_MAGIC, unix.SOCKFS_MAGIC, unix.ANON_INODE_FS_MAGIC,
		unix.RDTGROUP_SUPER_MAGIC, unix.XENFS_SUPER_MAGIC, unix.USBDEVICE_SUPER_MAGIC, unix.BDEVFS_MAGIC,
		configfsMagic, fusectlMagic, mqueueMagic:
		return errPseudo
	}
	return nil
}

// Magic numbers that x/sys does not name.
const (
	configfsMagic = 0x62656570
	fusectlMagic  = 0x65735543
	mqueueMagic   = 0x19800202
)

// workDir opens a command's working directory, and checks that it may be entered.
// The child enters the descriptor: the path may lead elsewhere by then, when
// descriptors of the agent's are still open in the child. It runs within Do.
func (s *Server) workDir(cwd string) (int, error) {
	fd, err := s.open(cwd, unix.O_PATH|unix.O_DIRECTORY)
	if err == nil {
		if err = unix.Faccessat2(fd, ".", unix.X_OK, unix.AT_EACCESS); err != nil {
			_ = unix.Close(fd)
		}
	}
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.ENOENT):
		return -1, fault.InvalidField("cwd", "%q does not exist", clip(cwd, 200)).WithRemedy("make the directory first, or leave cwd out")
	case errors.Is(err, unix.ENOTDIR):
		return -1, fault.InvalidField("cwd", "%q is not a directory", clip(cwd, 200))
	}
	return -1, fault.InvalidField("cwd", "%q cannot be entered: %s", clip(cwd, 200), errorText(err))
}

// shown is a path as results and messages have it: clean and escaped.
func shown(p string) string { return wire.EscapeName(path.Clean(p)) }
