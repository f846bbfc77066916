// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// assembly puts layers over each other in a directory that it alone writes to. Files are links
// to those of the layers; directories are its own.
type assembly struct {
	root    *os.Root
	own     bool
	implied map[string]bool // of the layer that is being laid
}

// assemble makes root of the layers, the lowest first.
func assemble(ctx context.Context, root *os.Root, layers []*layer, own bool) error {
	a := &assembly{root: root, own: own}
	for _, l := range layers {
		if err := a.lay(ctx, l); err != nil {
			return fmt.Errorf("lay the layer %s: %w", l.DiffID, err)
		}
	}
	return nil
}

func (a *assembly) lay(ctx context.Context, l *layer) error {
	for _, name := range l.Opaque {
		if err := a.emptied(name); err != nil {
			return err
		}
	}
	for _, name := range l.Removed {
		if err := a.gone(name); err != nil {
			return err
		}
	}
	a.implied = make(map[string]bool, len(l.Implied))
	for _, name := range l.Implied {
		a.implied[name] = true
	}
	from, err := os.Open(path.Join(l.dir, filesName))
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := openDir(a.root, ".")
	if err != nil {
		return err
	}
	defer to.Close()
	if err := a.merge(ctx, from, to, "."); err != nil {
		return err
	}
	if a.implied["."] {
		return nil
	}
	return a.dress(from, to)
}

var errMissing = fmt.Errorf("is not there: %w", fs.ErrNotExist)

// existing returns where name is in the root so far, "" if it is not.
func (a *assembly) existing(name string) (string, error) {
	dir, base := path.Split(name)
	at, err := resolve(a.root, path.Clean(dir), func(string) error { return errMissing })
	if errors.Is(err, errMissing) {
		return "", nil
	}
	if err != nil {
		return "", nil // behind a file: there is nothing to remove
	}
	return path.Join(at, base), nil
}

// gone removes what is at name.
func (a *assembly) gone(name string) error {
	at, err := a.existing(name)
	if err != nil || at == "" || at == "." {
		return err
	}
	return a.root.RemoveAll(at)
}

// emptied removes what is in the directory name.
func (a *assembly) emptied(name string) error {
	at := name
	if name != "." {
		var err error
		if at, err = a.existing(name); err != nil || at == "" {
			return err
		}
	}
	info, err := a.root.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := openDir(a.root, at)
	if err != nil {
		return err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := a.root.RemoveAll(path.Join(at, n)); err != nil {
			return err
		}
	}
	return nil
}

// merge links and makes in to, which is a directory of the root, what is in from, which is the
// directory name of a layer.
func (a *assembly) merge(ctx context.Context, from, to *os.File, name string) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	for {
		entries, err := from.ReadDir(512)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() {
				err = a.directory(ctx, from, to, e.Name(), path.Join(name, e.Name()))
			} else {
				err = a.link(from, to, e.Name())
			}
			if err != nil {
				return err
			}
		}
	}
}

func (a *assembly) directory(ctx context.Context, from, to *os.File, base, name string) error {
	source, err := sub(from, base)
	if err != nil {
		return err
	}
	defer source.Close()
	target, fresh, err := a.target(to, base, name)
	if err != nil {
		return err
	}
	defer target.Close()
	if err := a.merge(ctx, source, target, name); err != nil {
		return err
	}
	if a.implied[name] && !fresh {
		return nil
	}
	return a.dress(source, target)
}

// target opens the directory base of to, and makes it if it is missing or something else. A link to
// a directory stays where the layer has no entry for it: usr/bin is meant by bin/sh.
func (a *assembly) target(to *os.File, base, name string) (_ *os.File, fresh bool, err error) {
	f, err := sub(to, base)
	if err == nil {
		return f, false, nil
	}
	if !errors.Is(err, unix.ENOENT) {
		if a.implied[name] {
			at, rerr := resolve(a.root, name, func(string) error { return errMissing })
			if rerr == nil {
				f, err := openDir(a.root, at)
				return f, false, err
			}
		}
		if err := unix.Unlinkat(int(to.Fd()), base, 0); err != nil {
			return nil, false, &fs.PathError{Op: "unlink", Path: name, Err: err}
		}
	}
	if err := unix.Mkdirat(int(to.Fd()), base, 0o755); err != nil {
		return nil, false, &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	f, err = sub(to, base)
	return f, true, err
}

// sub opens a directory in a directory.
func sub(dir *os.File, base string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: base, Err: err}
	}
	return os.NewFile(uintptr(fd), base), nil
}

// link makes base in to the file that it is in from.
func (a *assembly) link(from, to *os.File, base string) error {
	err := unix.Linkat(int(from.Fd()), base, int(to.Fd()), base, 0)
	if errors.Is(err, unix.EEXIST) {
		if err := unix.Unlinkat(int(to.Fd()), base, 0); errors.Is(err, unix.EISDIR) {
			if err := a.emptyDir(to, base); err != nil {
				return err
			}
		} else if err != nil {
			return &fs.PathError{Op: "unlink", Path: base, Err: err}
		}
		err = unix.Linkat(int(from.Fd()), base, int(to.Fd()), base, 0)
	}
	if errors.Is(err, unix.EMLINK) {
		return copyFile(from, base, to, base, a.own)
	}
	if err != nil {
		return &fs.PathError{Op: "link", Path: base, Err: err}
	}
	return nil
}

// emptyDir removes a directory of the root with all that is in it.
func (a *assembly) emptyDir(dir *os.File, base string) error {
	r, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
	if err != nil {
		return err
	}
	defer r.Close()
	return r.RemoveAll(base)
}

// dress gives a directory the owner, mode, attributes and time of another one.
func (a *assembly) dress(from, to *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(from.Fd()), &st); err != nil {
		return err
	}
	return likeFile(int(from.Fd()), int(to.Fd()), &st, a.own)
}

// likeFile gives what to is open at the owner, mode, attributes and time of from.
func likeFile(from, to int, st *unix.Stat_t, own bool) error {
	if own {
		if err := unix.Fchown(to, int(st.Uid), int(st.Gid)); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(to, st.Mode&0o7777); err != nil {
		return err
	}
	if err := copyAttributes(from, to); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", to), []unix.Timespec{st.Mtim, st.Mtim}, 0)
}

// copyAttributes copies the attributes that layers keep.
func copyAttributes(from, to int) error {
	list := make([]byte, maxXattrBytes)
	n, err := unix.Flistxattr(from, list)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	if err != nil {
		return err
	}
	value := make([]byte, maxXattrBytes)
	for name := range strings.SplitSeq(string(list[:n]), "\x00") {
		if name != capability && !strings.HasPrefix(name, userXattr) {
			continue
		}
		n, err := unix.Fgetxattr(from, name, value)
		if err == nil {
			err = unix.Fsetxattr(to, name, value[:n], 0)
		}
		if err != nil && !errors.Is(err, unix.ENODATA) {
			return err
		}
	}
	return nil
}

// copyFile makes a file of its own where the layer's has as many names as the file system allows.
func copyFile(from *os.File, name string, to *os.File, base string, own bool) (err error) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(from.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		target := make([]byte, maxNameBytes)
		n, err := unix.Readlinkat(int(from.Fd()), name, target)
		if err == nil {
			err = unix.Symlinkat(string(target[:n]), int(to.Fd()), base)
		}
		if err == nil && own {
			err = unix.Fchownat(int(to.Fd()), base, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW)
		}
		return err
	case unix.S_IFREG:
	default:
		return &fs.PathError{Op: "link", Path: base, Err: unix.EMLINK}
	}
	in, err := unix.Openat(int(from.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	source := os.NewFile(uintptr(in), name)
	defer source.Close()
	out, err := unix.Openat(int(to.Fd()), base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	target := os.NewFile(uintptr(out), base)
	defer func() {
		if cerr := target.Close(); err == nil {
			err = cerr
		}
	}()
	if _, err := io.Copy(target, source); err != nil {
		return err
	}
	return likeFile(in, out, &st, own)
}
