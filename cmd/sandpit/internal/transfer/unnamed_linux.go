// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// canName reports whether files without a name can get one here.
func canName() bool {
	_, err := os.Lstat("/proc/self/fd")
	return err == nil
}

// unnamed creates a file that has no name. Not every disk can.
func unnamed(in *os.Root) (*os.File, error) {
	return in.OpenFile(".", os.O_WRONLY|unix.O_TMPFILE, 0o600)
}

// pathOf is a path of an open file.
func pathOf(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// nameIn names a file in a directory. A name that there is already is fs.ErrExist.
func nameIn(dir *os.File, name string, f *os.File) error {
	err := unix.Linkat(unix.AT_FDCWD, pathOf(f), int(dir.Fd()), name, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: f.Name(), New: name, Err: err}
	}
	return nil
}
