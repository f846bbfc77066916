// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"archive/tar"
	"io"
	"path"

	"golang.org/x/sys/unix"
)

// large makes a file as its content comes. Blocks of zeros become holes.
func (u *unpacker) large(tr *tar.Reader, h *tar.Header, name string) error {
	var fd, parent int
	var tmp string
	var err error
	dir, base := path.Split(name)
	u.v.Do(func() {
		u.leaveDirs(name)
		if parent, err = u.open(path.Clean(dir)); err == nil {
			fd, tmp, err = u.create(parent, base, true)
		}
	})
	if err != nil {
		return u.note(h.Name, err) // its content is passed over
	}
	defer unix.Close(fd)
	if err = u.content(fd, tr, h.Size); err != nil {
		u.v.Do(func() { _ = unix.Unlinkat(parent, tmp, 0) })
		return notArchive(err)
	}
	u.v.Do(func() { err = u.finish(parent, fd, tmp, base, h) })
	return u.made(h, err)
}

func (u *unpacker) content(fd int, r io.Reader, size int64) error {
	buf := u.s.o.Buffers.Get()
	defer u.s.o.Buffers.Put(buf)
	if err := unix.Ftruncate(fd, size); err != nil {
		return err
	}
	for off := int64(0); off < size; {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(r, buf[:min(int64(len(buf))&^(block-1), size-off)])
		if err != nil {
			return err
		}
		if err := writeBlocks(fd, buf[:n], off); err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}

// block is what a hole is made of.
const block = 4096

// writeBlocks writes the blocks that are not all zero, at an offset that is a block's.
func writeBlocks(fd int, b []byte, off int64) error {
	for len(b) > 0 {
		n := 0
		for n < len(b) && zero(b[n:min(n+block, len(b))]) {
			n = min(n+block, len(b))
		}
		b, off = b[n:], off+int64(n)
		n = 0
		for n < len(b) && !zero(b[n:min(n+block, len(b))]) {
			n = min(n+block, len(b))
		}
		for end := off + int64(n); off < end; {
			m, err := unix.Pwrite(fd, b[:end-off], off)
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				return err
			}
			b, off = b[m:], off+int64(m)
		}
	}
	return nil
}

// zero reports whether all of b is.
func zero(b []byte) bool { return b[0] == 0 && string(b[:len(b)-1]) == string(b[1:]) }
