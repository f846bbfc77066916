// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sparse

import (
	"context"
	"encoding/binary"
	"io"

	"golang.org/x/sys/unix"
)

// Length returns the size of the entry that [Write] writes of a file of the given size. The error is unix.EINVAL or
// unix.EOPNOTSUPP if the file system does not tell where holes are.
func Length(ctx context.Context, fd int, size int64) (n int64, err error) {
	err = data(ctx, fd, size, func(_, length int64) error {
		n += headSize + length
		return nil
	})
	return n, err
}

// Write writes the content of the entry of a file of the given size, which has not changed since [Length] was called: it calls copy to
// write the data of each part to w.
func Write(ctx context.Context, w io.Writer, fd int, size int64, copy func(at, length int64) error) error {
	return data(ctx, fd, size, func(at, length int64) error {
		var head [headSize]byte
		binary.BigEndian.PutUint64(head[:8], uint64(at))     //nolint:gosec // an offset
		binary.BigEndian.PutUint64(head[8:], uint64(length)) //nolint:gosec // a length
		if _, err := w.Write(head[:]); err != nil {
			return err
		}
		return copy(at, length)
	})
}

// data calls fn for each part of the first size bytes of a file that is no hole.
func data(ctx context.Context, fd int, size int64, fn func(at, length int64) error) error {
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		begin, err := unix.Seek(fd, at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			return nil
		}
		if err != nil {
			return err
		}
		end, err := unix.Seek(fd, begin, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if end = min(end, size); begin >= end {
			return nil
		}
		if err := fn(begin, end-begin); err != nil {
			return err
		}
		at = end
	}
	return nil
}
