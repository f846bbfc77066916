// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mcpfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openPlain opens a file to be read, without waiting for a pipe's other end. A link is errLink.
func openPlain(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, errLink
	}
	return f, err
}

// owned reports whether a file is ours.
func owned(st fs.FileInfo) bool {
	owner, ok := st.Sys().(*syscall.Stat_t)
	return !ok || int(owner.Uid) == os.Geteuid()
}
