// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"io"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// Limits bound one image. Zero fields take the values named behind them.
type Limits struct {
	Bytes  int64 // of the files of all its layers, and of an archive's own: 32 GiB
	Files  int64 // entries of all its layers: 2 million
	Spared int64 // bytes that stay free on the disk: 1 GiB
}

// maxBlob bounds a compressed layer.
const maxBlob = 32 << 30

func (l Limits) filled() Limits {
	if l.Bytes <= 0 {
		l.Bytes = 32 << 30
	}
	if l.Files <= 0 {
		l.Files = 2_000_000
	}
	if l.Spared <= 0 {
		l.Spared = 1 << 30
	}
	return l
}

// budget counts what one image still may take. It is safe for concurrent use.
type budget struct {
	limits Limits
	dir    string // on the disk that is looked at
	bytes  atomic.Int64
	files  atomic.Int64
	looked atomic.Int64 // bytes at the last look
}

func newBudget(l Limits, dir string) *budget { return &budget{limits: l.filled(), dir: dir} }

// entry counts one more file.
func (b *budget) entry() error {
	if b.files.Add(1) > b.limits.Files {
		return refused("it has more than %d files", b.limits.Files)
	}
	return nil
}

// room reports whether n bytes more may come, before they do.
func (b *budget) room(n int64) error {
	if n < 0 || n > b.limits.Bytes-b.bytes.Load() {
		return refused("its files have more than %d bytes", b.limits.Bytes)
	}
	return nil
}

// perLook is how many bytes are written between two looks at the disk.
const perLook = 64 << 20

// take counts n bytes.
func (b *budget) take(n int64) error {
	now := b.bytes.Add(n)
	if now > b.limits.Bytes {
		return refused("its files have more than %d bytes", b.limits.Bytes)
	}
	if last := b.looked.Load(); now-last < perLook && last != 0 || !b.looked.CompareAndSwap(last, max(now, 1)) {
		return nil
	}
	return b.disk()
}

// disk refuses to fill the disk: what runs needs room too.
func (b *budget) disk() error {
	var st unix.Statfs_t
	if err := unix.Statfs(b.dir, &st); err != nil {
		return err
	}
	if free := int64(st.Bavail) * st.Bsize; free < b.limits.Spared {
		return fault.NoSpace(fault.HostDisk, unix.ENOSPC, "the image does not fit: the disk of images has %d MiB free, and %d stay so", free>>20, b.limits.Spared>>20).
			WithRemedy("free room where images are kept, then try again; layers that were finished are kept")
	}
	return nil
}

// reader counts what is read of r.
func (b *budget) reader(r io.Reader) io.Reader { return &counted{r, b} }

type counted struct {
	r io.Reader
	b *budget
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if n > 0 {
		if berr := c.b.take(int64(n)); berr != nil {
			return n, berr
		}
	}
	return n, err
}
