// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// entry is a file of a tree, with what is compared and copied of it.
type entry struct {
	name   string // below the tree's root, with slashes
	host   string // where it is; empty of an image's
	stat   unix.Stat_t
	link   string // of a symbolic link
	xattrs map[string]string
}

func (e *entry) kind() uint32 { return e.stat.Mode & unix.S_IFMT }

// inode names the file behind a name.
type inode struct{ dev, ino uint64 }

func (e *entry) inode() inode { return inode{e.stat.Dev, e.stat.Ino} }

// image is the tree that every disk begins with, parents first.
func image() []entry {
	var all []entry
	for _, name := range []string{"artifacts", "home", "home/sandbox", "tmp", "workspace"} {
		e := entry{name: name}
		e.stat.Mode, e.stat.Uid, e.stat.Gid = unix.S_IFDIR|0o755, uint32(os.Getuid()), uint32(os.Getgid())
		all = append(all, e)
	}
	return all
}

// scan lists all below root, parents first, each directory's names sorted. A name
// in hidden is looked at where that says.
func scan(root string, hidden map[string]string) ([]entry, error) {
	var all []entry
	var walk func(dir, host string) error
	walk = func(dir, host string) error {
		list, err := os.ReadDir(host)
		if err != nil {
			return err
		}
		for _, d := range list {
			e := entry{name: path.Join(dir, d.Name()), host: filepath.Join(host, d.Name())}
			if under, ok := hidden[e.name]; ok {
				e.host = under
			}
			err := e.look()
			if errors.Is(err, unix.ENOENT) {
				continue // gone meanwhile
			}
			if err != nil {
				return err
			}
			all = append(all, e)
			if e.kind() == unix.S_IFDIR {
				if err := walk(e.name, e.host); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
		return nil
	}
	return all, walk("", root)
}

// look reads what the file says of itself.
func (e *entry) look() error {
	if err := unix.Lstat(e.host, &e.stat); err != nil {
		return &os.PathError{Op: "lstat", Path: e.host, Err: err}
	}
	if e.kind() == unix.S_IFLNK {
		var err error
		if e.link, err = os.Readlink(e.host); err != nil {
			return err
		}
	}
	names := make([]byte, 64<<10)
	n, err := unix.Llistxattr(e.host, names)
	if err != nil && !errors.Is(err, unix.ENOTSUP) {
		return &os.PathError{Op: "llistxattr", Path: e.host, Err: err}
	}
	e.xattrs = map[string]string{}
	value := make([]byte, 64<<10)
	for _, name := range strings.FieldsFunc(string(names[:max(n, 0)]), func(r rune) bool { return r == 0 }) {
		n, err := unix.Lgetxattr(e.host, name, value)
		if err != nil {
			return &os.PathError{Op: "lgetxattr", Path: e.host, Err: err}
		}
		e.xattrs[name] = string(value[:n])
	}
	return nil
}

// same reports whether two files are the same but for their times.
func same(a, b *entry) (bool, error) {
	if a.stat.Mode != b.stat.Mode || a.stat.Uid != b.stat.Uid || a.stat.Gid != b.stat.Gid || a.stat.Rdev != b.stat.Rdev ||
		a.link != b.link || !maps.Equal(a.xattrs, b.xattrs) {
		return false, nil
	}
	if a.kind() != unix.S_IFREG {
		return true, nil
	}
	if a.stat.Size != b.stat.Size {
		return false, nil
	}
	one, err := os.ReadFile(a.host)
	other, otherErr := os.ReadFile(b.host)
	if err = errors.Join(err, otherErr); errors.Is(err, fs.ErrNotExist) {
		return false, nil // gone meanwhile
	}
	return string(one) == string(other), err
}

// size is what the files of a tree hold, each once.
func size(all []entry) int64 {
	var sum int64
	seen := map[inode]bool{}
	for i := range all {
		if e := &all[i]; e.kind() == unix.S_IFREG && !seen[e.inode()] {
			seen[e.inode()] = true
			sum += e.stat.Size
		}
	}
	return sum
}

// copyTree makes the directory to, with a copy of all entries in it: hard links among
// them, owners, modes, times and attributes are as they were.
func copyTree(all []entry, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	first := map[inode]string{}
	for i := range all {
		e := &all[i]
		at := filepath.Join(to, e.name)
		if e.kind() != unix.S_IFDIR && e.stat.Nlink > 1 {
			if had, ok := first[e.inode()]; ok {
				if err := os.Link(had, at); err != nil {
					return err
				}
				continue
			}
			first[e.inode()] = at
		}
		if err := e.copyTo(at); err != nil {
			return err
		}
	}
	for _, e := range slices.Backward(all) { // a directory's times and mode when all is in it
		if e.kind() == unix.S_IFDIR {
			if err := e.dress(filepath.Join(to, e.name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyTo makes the one file at a path; a directory gets its attributes later.
func (e *entry) copyTo(at string) error {
	var err error
	switch e.kind() {
	case unix.S_IFDIR:
		return os.Mkdir(at, 0o700)
	case unix.S_IFREG:
		err = copyFile(e.host, at)
	case unix.S_IFLNK:
		err = os.Symlink(e.link, at)
	default:
		err = unix.Mknod(at, e.stat.Mode, int(e.stat.Rdev))
	}
	return cmp.Or(err, e.dress(at))
}

// dress gives the file at a path its attributes.
func (e *entry) dress(at string) error {
	if err := unix.Lchown(at, int(e.stat.Uid), int(e.stat.Gid)); err != nil && os.Geteuid() == 0 {
		return &os.PathError{Op: "lchown", Path: at, Err: err}
	}
	for name, value := range e.xattrs {
		if err := unix.Lsetxattr(at, name, []byte(value), 0); err != nil {
			return &os.PathError{Op: "lsetxattr", Path: at, Err: err}
		}
	}
	if e.kind() != unix.S_IFLNK {
		if err := unix.Chmod(at, e.stat.Mode&0o7777); err != nil {
			return &os.PathError{Op: "chmod", Path: at, Err: err}
		}
	}
	if e.stat.Mtim == (unix.Timespec{}) {
		return nil // an image's: now
	}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, at, []unix.Timespec{e.stat.Atim, e.stat.Mtim}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "utimensat", Path: at, Err: err}
	}
	return nil
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
