// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"archive/tar"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// partHead is how many bytes stand before each part of a file with holes.
const partHead = 16

// sparseFile writes a file with holes; see [sparseRecord]. It belongs to a snapshot, so
// nothing changes between the two looks at its parts.
func (e *exporter) sparseFile(n node, st *unix.Stat_t, h *tar.Header) error {
	fd, err := openFile(n.dir, n.name, st)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "file")
	defer f.Close()
	h.Size = 0
	err = e.parts(fd, st.Size, func(_, length int64) error {
		h.Size += partHead + length
		return nil
	})
	if err != nil {
		return err
	}
	if h.PAXRecords == nil {
		h.PAXRecords = make(map[string]string)
	}
	h.PAXRecords[sparseRecord] = strconv.FormatInt(st.Size, 10)
	if err := e.write(n, st, h); err != nil {
		return err
	}
	return e.parts(fd, st.Size, func(at, length int64) error {
		var head [partHead]byte
		binary.BigEndian.PutUint64(head[:8], uint64(at))
		binary.BigEndian.PutUint64(head[8:], uint64(length))
		if _, err := e.w.Write(head[:]); err != nil {
			return err
		}
		for end := at + length; at < end; {
			if err := e.ctx.Err(); err != nil {
				return err
			}
			n := min(end-at, copyStep)
			if copied, err := io.Copy(e.w, io.NewSectionReader(f, at, n)); err != nil || copied != n {
				return fmt.Errorf("copy a file into the archive (%d of %d bytes): %w", copied, n, cmp.Or(err, io.ErrUnexpectedEOF))
			}
			at += n
		}
		return nil
	})
}

// parts calls fn for each part of a file that is no hole.
func (e *exporter) parts(fd int, size int64, fn func(at, length int64) error) error {
	for at := int64(0); at < size; {
		if err := e.ctx.Err(); err != nil {
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

// sparseContent writes a file with holes, whose size the record says.
func (im *importer) sparseContent(fd int, h *tar.Header, record string) error {
	size, err := strconv.ParseInt(record, 10, 64)
	if err != nil || size < 0 {
		return invalidEntry(h, "has holes and no size")
	}
	// The file system is asked whether a file can be so large before anything is written.
	if err := unix.Ftruncate(fd, size); err == unix.EFBIG {
		return invalidEntry(h, "has %d bytes, more than a file of this file system can have", size)
	} else if err != nil {
		return err
	}
	last := int64(0)
	for left := h.Size; left > 0; {
		var head [partHead]byte
		if _, err := io.ReadFull(im.tar, head[:]); err != nil {
			return fmt.Errorf("read a file of the archive: %w", err)
		}
		left -= partHead
		at, length := binary.BigEndian.Uint64(head[:8]), binary.BigEndian.Uint64(head[8:])
		if at > math.MaxInt64 || length > math.MaxInt64 || int64(at) < last || int64(length) > left || int64(length) > size-int64(at) {
			return invalidEntry(h, "has parts that do not fit together")
		}
		if err := im.content(fd, int64(at), int64(length)); err != nil {
			return err
		}
		left -= int64(length)
		last = int64(at + length)
	}
	return nil
}
