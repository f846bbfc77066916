// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package descriptor

import (
	"io"

	"golang.org/x/sys/unix"
)

// File is the descriptor of an open file.
type File int

// ReadAt reads a file by its descriptor.
func (f File) ReadAt(b []byte, off int64) (int, error) {
	total := 0
	for total < len(b) {
		n, err := unix.Pread(int(f), b[total:], off+int64(total))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return total, err
		}
		if n == 0 {
			return total, io.EOF
		}
		total += n
	}
	return total, nil
}

// WriteAt writes to a file by its descriptor.
func (f File) WriteAt(b []byte, off int64) (int, error) {
	total := 0
	for total < len(b) {
		n, err := unix.Pwrite(int(f), b[total:], off+int64(total))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}

// CloseAll closes descriptors, but for those below zero, and sets them to -1.
func CloseAll(fds []int) {
	for i, fd := range fds {
		if fd >= 0 {
			_ = unix.Close(fd)
			fds[i] = -1
		}
	}
}
