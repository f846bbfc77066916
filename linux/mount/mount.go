// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Param is one parameter of a new file system: Key=Value; Key alone where Flag;
// or Key and a descriptor where File is set.
type Param struct {
	Key, Value string
	File       *os.File
	Flag       bool
}

// New makes a detached mount of a new file system of the given type. attrs are
// unix.MOUNT_ATTR_*. The kernel's own words on what it disliked are in the error.
func New(fstype string, attrs int, params ...Param) (*os.File, error) {
	fd, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a %s: fsopen: %w", fstype, err)
	}
	ctx := os.NewFile(uintptr(fd), "fscontext")
	defer func() { _ = ctx.Close() }()
	for _, p := range params {
		switch {
		case p.Flag:
			err = unix.FsconfigSetFlag(fd, p.Key)
		case p.File != nil:
			err = unix.FsconfigSetFd(fd, p.Key, int(p.File.Fd()))
		default:
			err = unix.FsconfigSetString(fd, p.Key, p.Value)
		}
		if err != nil {
			return nil, fmt.Errorf("make a %s: set %s: %w%s", fstype, p.Key, err, words(ctx))
		}
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return nil, fmt.Errorf("make a %s: create: %w%s", fstype, err, words(ctx))
	}
	m, err := unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return nil, fmt.Errorf("make a %s: fsmount: %w%s", fstype, err, words(ctx))
	}
	return os.NewFile(uintptr(m), fstype), nil
}

// words reads what the kernel logged to a file system context.
func words(ctx *os.File) string {
	var b [512]byte
	n, err := unix.Read(int(ctx.Fd()), b[:])
	if err != nil || n <= 0 {
		return ""
	}
	return " (kernel: " + string(b[:n]) + ")"
}

// Clone makes a detached copy of the mount, or of the part of it, at path below
// dir; an empty path means dir itself. A final symbolic link is not followed.
func Clone(dir *os.File, path string) (*os.File, error) {
	return CloneAt(int(dir.Fd()), path)
}

// CloneAt is [Clone] for a plain descriptor, which may be unix.AT_FDCWD.
func CloneAt(dir int, path string) (*os.File, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_SYMLINK_NOFOLLOW)
	if path == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	fd, err := unix.OpenTree(dir, path, flags)
	if err != nil {
		return nil, &os.PathError{Op: "open_tree", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// IDMap makes the detached mount show the ids on disk as the user namespace
// maps them: what root owns on disk, the namespace's root owns through it.
func IDMap(m, userns *os.File) error {
	return setattr(m, unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(userns.Fd())})
}

// Lend is IDMap and SetAttr in one, for a detached mount that is to be attached in
// another mount namespace: what is mounted below it here or there stays here or there.
func Lend(m, userns *os.File, attrs uint64) error {
	return setattr(m, unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: attrs | unix.MOUNT_ATTR_IDMAP, Propagation: unix.MS_PRIVATE, Userns_fd: uint64(userns.Fd())})
}

// SetAttr sets attributes (unix.MOUNT_ATTR_*) of the one mount that m is the root of.
func SetAttr(m *os.File, attrs uint64) error {
	return setattr(m, unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: attrs})
}

func setattr(m *os.File, flags uint, a *unix.MountAttr) error {
	if err := unix.MountSetattr(int(m.Fd()), "", flags, a); err != nil {
		return fmt.Errorf("mount_setattr of %q: %w", m.Name(), err)
	}
	return nil
}
