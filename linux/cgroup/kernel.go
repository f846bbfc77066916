// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// kernel is what changes cgroups. There is one besides the real one: the tests'
// model of cgroup v2, whose rules (files that appear with a directory, no
// processes beside controllers) a plain directory tree does not have.
type kernel interface {
	mkdirat(dir int, path string) error
	rmdirat(dir int, path string) error
	// renameat renames within a directory. No cgroup2 does.
	renameat(dir int, from, to string) error
	// write opens, writes once and closes: cgroup files take a value whole.
	write(dir int, path string, value []byte) error
	chown(dir int, path string, uid int) error
}

type system struct{}

func (system) mkdirat(dir int, path string) error {
	return again(func() error { return unix.Mkdirat(dir, path, 0o755) })
}

func (system) rmdirat(dir int, path string) error {
	return again(func() error { return unix.Unlinkat(dir, path, unix.AT_REMOVEDIR) })
}

func (system) renameat(dir int, from, to string) error {
	return again(func() error { return unix.Renameat(dir, from, dir, to) })
}

func (system) chown(dir int, path string, uid int) error {
	return again(func() error { return unix.Fchownat(dir, path, uid, -1, unix.AT_SYMLINK_NOFOLLOW) })
}

func (system) write(dir int, path string, value []byte) error {
	fd, err := openat(dir, path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return again(func() error {
		_, err := unix.Write(fd, value)
		return err
	})
}

// openat never follows a link: cgroups have none, so one is somebody's trick.
func openat(dir int, path string, flags int) (fd int, err error) {
	err = again(func() error {
		fd, err = unix.Openat(dir, path, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

func openFile(dir int, path string, flags int) (*os.File, error) {
	fd, err := openat(dir, path, flags)
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

// read gives a small file whole.
func read(dir int, path string) (string, error) {
	f, err := openFile(dir, path, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<16))
	return string(b), err
}

// children lists the directories in a directory.
func children(dir int, path string) ([]string, error) {
	f, err := openFile(dir, path, unix.O_RDONLY|unix.O_DIRECTORY)
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
