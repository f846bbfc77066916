// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"archive/tar"
	"errors"
	"io"
	"strconv"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/sparse"
)

// sparse writes a file with holes. done is false, and nothing was written, if the file system does not tell where they are.
func (r *reader) sparse(fd int, st *unix.Stat_t, h *tar.Header) (done bool, err error) {
	size, err := sparse.Length(r.ctx, fd, st.Size)
	if err == unix.EINVAL || err == unix.EOPNOTSUPP {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	h.Size = size
	h.PAXRecords = map[string]string{sparse.Record: strconv.FormatInt(st.Size, 10)}
	if err := r.entry(fd, st, h); err != nil {
		return false, err
	}
	return true, sparse.Write(r.ctx, r.out, fd, st.Size, func(at, length int64) error { return r.copy(fd, at, length) })
}

// sparse writes the parts of a file with holes.
func (f *filler) sparse(fd int, h *tar.Header, parts *sparse.Parts) error {
	if err := unix.Ftruncate(fd, parts.Size); err != nil {
		return err
	}
	for {
		at, length, err := parts.Next()
		if err == io.EOF {
			return nil
		}
		if wrong, ok := errors.AsType[sparse.FormatError](err); ok {
			return invalid(h, wrong.Error())
		}
		if err != nil {
			return notWhole(err)
		}
		if err := f.copy(fd, at, length); err != nil {
			return err
		}
	}
}
