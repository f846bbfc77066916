// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Place is a mount in a mount namespace. Its paths are those of the namespace, absolute and clean.
type Place struct {
	At       string // where it is to be
	ReadOnly bool   // of a part
	// Whole is where it is now, of what is to be a part: then the directory Sub of it, relative and
	// clean, takes its place at At. "": it is at At already.
	Whole, Sub string
	Make       bool // directories of Sub that are missing, each as whoever owns the one above
}

// Blocked is why a directory is none: something on the path is a link or a file, or it is missing.
type Blocked struct {
	Path string // of the directory
	Err  error
}

func (b *Blocked) Error() string {
	return fmt.Sprintf("%s is no directory without links on its way: %v", b.Path, b.Err)
}

func (b *Blocked) Unwrap() error { return b.Err }

// Arrange gives mounts of another mount namespace attributes (unix.MOUNT_ATTR_*), and has parts take the
// place of wholes. No link is followed, and nothing leads out of a whole: what is in it may be hostile,
// and change meanwhile. What was done before stays as it is, so that it may be called again after a
// part of it was done, by whoever.
func Arrange(ns *os.File, attrs uint64, places []Place) error {
	done := make(chan error, 1)
	OnThread(func() { done <- arrange(ns, attrs, places) })
	return <-done
}

// arrange is Arrange on a thread that ends with it.
func arrange(ns *os.File, attrs uint64, places []Place) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // else no thread may change its mount namespace
		return fmt.Errorf("unshare the working directory: %w", err)
	}
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter a mount namespace: %w", err)
	}
	root, err := os.OpenFile("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, p := range places {
		if err := p.arrange(root, attrs); err != nil {
			return err
		}
	}
	return nil
}

func (p Place) arrange(root *os.File, attrs uint64) error {
	if p.Whole == "" {
		at, err := openDir(root, p.At, 0)
		if err != nil {
			return err
		}
		defer func() { _ = at.Close() }()
		// Without mount_setattr, before Linux 5.12, a mount stays as it is: it is the second lock of a door.
		if err := own(at, attrs); err != nil && !errors.Is(err, unix.ENOSYS) {
			return err
		}
		return nil
	}
	whole, err := openDir(root, p.Whole, 0)
	if err != nil {
		return err
	}
	defer func() { _ = whole.Close() }()
	if is, err := isRoot(whole); !is || err != nil {
		return err // its part is where it should be
	}
	sub, err := p.openSub(whole)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Close() }()
	part, err := CloneAt(int(sub.Fd()), "")
	if err != nil {
		return err
	}
	defer func() { _ = part.Close() }()
	if p.ReadOnly {
		attrs |= unix.MOUNT_ATTR_RDONLY
	}
	if err := own(part, attrs); err != nil && (p.ReadOnly || !errors.Is(err, unix.ENOSYS)) {
		return err
	}
	at, err := openDir(root, p.At, 0)
	if err != nil {
		return err
	}
	defer func() { _ = at.Close() }()
	if err := unix.MoveMount(int(part.Fd()), "", int(at.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount a part at %s: %w", p.At, err)
	}
	// By its descriptor: a path could lead elsewhere by now.
	if err := unix.Fchdir(int(whole.Fd())); err != nil {
		return fmt.Errorf("enter %s: %w", p.Whole, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount %s: %w", p.Whole, err)
	}
	return nil
}

// inWhole keeps to a whole.
const inWhole = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV

// openSub opens the part.
func (p Place) openSub(whole *os.File) (*os.File, error) {
	sub, err := openDir(whole, p.Sub, inWhole)
	if !p.Make || !errors.Is(err, unix.ENOENT) {
		return sub, err
	}
	dir := whole
	for name := range strings.SplitSeq(p.Sub, "/") {
		next, err := openDir(dir, name, inWhole)
		if errors.Is(err, unix.ENOENT) {
			if err = makeLike(dir, name); err == nil {
				next, err = openDir(dir, name, inWhole)
			}
		}
		if dir != whole {
			_ = dir.Close()
		}
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

// makeLike makes a directory in dir as its owner would, who is then the new one's: who exchanges it meanwhile is given nothing. The thread is one of Arrange.
func makeLike(dir *os.File, name string) (err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return &os.PathError{Op: "fstat", Path: dir.Name(), Err: err}
	}
	unix.Umask(0o022)                       // the thread's own
	_, _ = unix.SetfsgidRetGid(int(st.Gid)) // neither says whether it worked: without it is root's
	_, _ = unix.SetfsuidRetUid(int(st.Uid))
	defer func() {
		_, _ = unix.SetfsuidRetUid(0)
		_, _ = unix.SetfsgidRetGid(0)
	}()
	if err := unix.Mkdirat(int(dir.Fd()), name, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return &os.PathError{Op: "mkdirat", Path: name, Err: err}
	}
	return nil
}

// own is SetAttr of a mount that what is mounted below it elsewhere does not come to.
func own(m *os.File, attrs uint64) error {
	return setattr(m, unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: attrs, Propagation: unix.MS_PRIVATE})
}

// openDir opens a directory below another without following a link.
func openDir(dir *os.File, name string, resolve uint64) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | resolve,
	}
	for try := 0; ; try++ {
		fd, err := unix.Openat2(int(dir.Fd()), strings.TrimPrefix(name, "/"), &how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), name), nil
		case try < 10 && (errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)): // something was renamed meanwhile
			continue
		case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EXDEV):
			return nil, &Blocked{name, err}
		}
		return nil, &os.PathError{Op: "openat2", Path: name, Err: err}
	}
}

// isRoot reports whether a directory is where something is mounted.
func isRoot(dir *os.File) (bool, error) {
	var st unix.Statx_t
	if err := unix.Statx(int(dir.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS, &st); err != nil {
		return false, &os.PathError{Op: "statx", Path: dir.Name(), Err: err}
	}
	if st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return false, fmt.Errorf("the kernel does not say whether %s is a mount: %w", dir.Name(), unix.ENOSYS)
	}
	return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}
