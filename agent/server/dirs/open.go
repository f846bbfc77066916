// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dirs

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrPseudo is a path on a file system that is not storage.
var ErrPseudo = errors.New("on a file system of the kernel's")

// ErrHidden is a directory of the agent's own.
var ErrHidden = errors.New("a directory of the agent's own")

// ID names a directory, whatever its path.
type ID struct{ Dev, Ino uint64 }

// Root is where absolute paths begin, and with whose rights directories are opened.
type Root struct {
	Dir    string            // the directory that stands for "/"
	Do     func(fn func())   // runs fn with the rights; fn is short, and does not call Do
	Hidden func() (ID, bool) // the directory that is not looked into; nil: there is none
}

// Open opens the directory of an absolute path that has no link on its way. It runs within Do.
func (r *Root) Open(p string) (int, error) {
	root, err := unix.Open(r.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	p = strings.Trim(p, "/")
	if p == "" {
		p = "."
	}
	return r.checked(Openat2(root, p, unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}))
}

// Enter opens a directory that lies in another one, on the same mount: what is mounted there is
// EXDEV. It runs within Do.
func (r *Root) Enter(dir int, name string) (int, error) {
	return r.checked(Openat2(dir, name, unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}))
}

// checked closes what is not to be looked into.
func (r *Root) checked(fd int, err error) (int, error) {
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = CheckStorage(fd); err == nil {
		err = unix.Fstat(fd, &st)
	}
	if err == nil && r.Hidden != nil {
		if hidden, is := r.Hidden(); is && hidden == (ID{st.Dev, st.Ino}) {
			err = ErrHidden
		}
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Gone reports whether an error of [Root.Open] or [Root.Enter] says that there is no such directory any more.
func Gone(err error) bool { return err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP }

// Openat2 opens a file, and tries again where the kernel gave up since something was renamed meanwhile.
func Openat2(at int, p string, how unix.OpenHow) (int, error) {
	for range 100 {
		fd, err := unix.Openat2(at, p, &how)
		if err != unix.EAGAIN && err != unix.EINTR {
			return fd, err
		}
	}
	return -1, unix.EAGAIN
}

// CheckStorage refuses what lies on a file system of the kernel's own.
func CheckStorage(fd int) error {
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
		return ErrPseudo
	}
	return nil
}

// Magic numbers that x/sys does not name.
const (
	configfsMagic = 0x62656570
	fusectlMagic  = 0x65735543
	mqueueMagic   = 0x19800202
)
