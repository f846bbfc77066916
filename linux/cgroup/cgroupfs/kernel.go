// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroupfs

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Kernel is what changes cgroups. There is one besides [System]: the tests'
// model of cgroup v2, whose rules (files that appear with a directory, no
// processes beside controllers) a plain directory tree does not have.
type Kernel interface {
	Mkdir(dir int, path string) error
	Rmdir(dir int, path string) error
	// Write opens, writes once and closes: cgroup files take a value whole.
	Write(dir int, path string, value []byte) error
	Chown(dir int, path string, uid int) error
}

// System is the kernel of this host.
type System struct{}

func (System) Mkdir(dir int, path string) error {
	return again(func() error { return unix.Mkdirat(dir, path, 0o755) })
}

func (System) Rmdir(dir int, path string) error {
	return again(func() error { return unix.Unlinkat(dir, path, unix.AT_REMOVEDIR) })
}

func (System) Chown(dir int, path string, uid int) error {
	return again(func() error { return unix.Fchownat(dir, path, uid, -1, unix.AT_SYMLINK_NOFOLLOW) })
}

func (System) Write(dir int, path string, value []byte) error {
	fd, err := Openat(dir, path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return again(func() error {
		_, err := unix.Write(fd, value)
		return err
	})
}

// Openat opens a file of a group, and never follows a link: cgroups have none, so one is
// somebody's trick.
func Openat(dir int, path string, flags int) (fd int, err error) {
	err = again(func() error {
		fd, err = unix.Openat(dir, path, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// Open is Openat as a file.
func Open(dir int, path string, flags int) (*os.File, error) {
	fd, err := Openat(dir, path, flags)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// again repeats what a signal interrupted.
func again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Read reads a small file.
func Read(dir int, path string) (string, error) {
	f, err := Open(dir, path, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<16))
	return string(b), err
}

// Children lists the groups in an open group.
func Children(dir int, path string) ([]string, error) {
	f, err := Open(dir, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Exists reports whether a group or a file is there.
func Exists(dir int, path string) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, path, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}
