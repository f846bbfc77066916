// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/sparse"
)

// sparseFile writes a file with holes; see [sparse.Record]. It belongs to a snapshot, so
// nothing changes between the two looks at its parts.
func (e *exporter) sparseFile(n node, st *unix.Stat_t, h *tar.Header) error {
	fd, err := openFile(n.dir, n.name, st)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "file")
	defer f.Close()
	if h.Size, err = sparse.Length(e.ctx, fd, st.Size); err != nil {
		return err
	}
	if h.PAXRecords == nil {
		h.PAXRecords = make(map[string]string)
	}
	h.PAXRecords[sparse.Record] = strconv.FormatInt(st.Size, 10)
	if err := e.write(n, st, h); err != nil {
		return err
	}
	return sparse.Write(e.ctx, e.w, fd, st.Size, func(at, length int64) error {
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

// sparseContent writes a file with holes.
func (im *importer) sparseContent(fd int, h *tar.Header, p *sparse.Parts) error {
	// The file system is asked whether a file can be so large before anything is written.
	if err := unix.Ftruncate(fd, p.Size); err == unix.EFBIG {
		return invalidEntry(h, "has %d bytes, more than a file of this file system can have", p.Size)
	} else if err != nil {
		return err
	}
	for {
		at, length, err := p.Next()
		if err == io.EOF {
			return nil
		}
		if wrong, ok := errors.AsType[sparse.FormatError](err); ok {
			return invalidEntry(h, "%s", wrong)
		}
		if err != nil {
			return fmt.Errorf("read a file of the archive: %w", err)
		}
		if err := im.content(fd, at, length); err != nil {
			return err
		}
	}
}
