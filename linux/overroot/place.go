// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package overroot

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// place opens the directory or the file below a root at a path, for a mount to be put on. What is missing it makes, and what is of another
// kind, or a link, it replaces: the sandbox may have moved away, or exchanged, what the mounts of its next start are put on.
func place(root int, path string, isDir bool) (int, error) {
	at, err := unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for n, name := range parts {
		next, err := step(at, name, isDir || n < len(parts)-1)
		_ = unix.Close(at)
		if err != nil {
			return -1, &os.PathError{Op: "make", Path: "/" + strings.Join(parts[:n+1], "/"), Err: err}
		}
		at = next
	}
	return at, nil
}

// step opens an entry of a directory, which is a directory itself or a file.
func step(dir int, name string, isDir bool) (int, error) {
	for range 2 {
		fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			var st unix.Stat_t
			err = unix.Fstat(fd, &st)
			if kind := st.Mode & unix.S_IFMT; err == nil && (isDir && kind == unix.S_IFDIR || !isDir && kind != unix.S_IFDIR && kind != unix.S_IFLNK) {
				return fd, nil
			}
			_ = unix.Close(fd)
			if err != nil {
				return -1, err
			}
			if err := remove(dir, name); err != nil {
				return -1, err
			}
		} else if err != unix.ENOENT {
			return -1, err
		}
		if isDir {
			err = unix.Mkdirat(dir, name, 0o755)
		} else {
			var made int
			if made, err = unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644); err == nil {
				_ = unix.Close(made)
			}
		}
		if err != nil {
			return -1, err
		}
	}
	return -1, unix.EAGAIN
}

// remove removes an entry, with all that is in it.
func remove(dir int, name string) error {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	in, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(fd))
	_ = unix.Close(fd)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	return in.RemoveAll(name)
}
