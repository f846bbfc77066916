// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"archive/tar"
	"encoding/binary"
	"io"
	"math"
	"strconv"

	"golang.org/x/sys/unix"
)

// sparse writes a file with holes. done is false, and nothing was written, where the file system does not tell where they are.
func (r *reader) sparse(fd int, st *unix.Stat_t, h *tar.Header) (done bool, err error) {
	size := int64(0)
	err = r.parts(fd, st.Size, func(_, length int64) error {
		size += partHead + length
		return nil
	})
	if err == unix.EINVAL || err == unix.EOPNOTSUPP {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	h.Size = size
	h.PAXRecords = map[string]string{sparseRecord: strconv.FormatInt(st.Size, 10)}
	if err := r.entry(fd, st, h); err != nil {
		return false, err
	}
	return true, r.parts(fd, st.Size, func(at, length int64) error {
		var head [partHead]byte
		binary.BigEndian.PutUint64(head[:8], uint64(at))
		binary.BigEndian.PutUint64(head[8:], uint64(length))
		if _, err := r.out.Write(head[:]); err != nil {
			return err
		}
		return r.copy(fd, at, length)
	})
}

// parts calls fn for each part of a file that is no hole.
func (r *reader) parts(fd int, size int64, fn func(at, length int64) error) error {
	for at := int64(0); at < size; {
		if err := r.ctx.Err(); err != nil {
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

// sparse writes a file with holes, whose size the record says.
func (f *filler) sparse(fd int, h *tar.Header, record string) error {
	size, err := strconv.ParseInt(record, 10, 64)
	if err != nil || size < 0 {
		return invalid(h, "has holes and no size")
	}
	if err := unix.Ftruncate(fd, size); err != nil {
		return err
	}
	last := int64(0)
	for left := h.Size; left > 0; {
		var head [partHead]byte
		if _, err := io.ReadFull(f.in, head[:]); err != nil {
			return notWhole(err)
		}
		left -= partHead
		at, length := binary.BigEndian.Uint64(head[:8]), binary.BigEndian.Uint64(head[8:])
		if at > math.MaxInt64 || length > math.MaxInt64 || int64(at) < last || int64(length) > left || int64(length) > size-int64(at) {
			return invalid(h, "has parts that do not fit together")
		}
		if err := f.copy(fd, int64(at), int64(length)); err != nil {
			return err
		}
		left -= int64(length)
		last = int64(at + length)
	}
	return nil
}
