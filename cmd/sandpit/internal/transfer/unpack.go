// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"sandpit.dev/fault"
)

const (
	// madeAtOnce is how many entries are made while the next are read, with at most madeArena bytes
	// of files of at most madeSmall.
	madeAtOnce = 128
	madeArena  = 256 << 10
	madeSmall  = 64 << 10
)

// Unpack makes what an archive out of a sandbox holds: the file or directory that it begins with gets the
// path to, which may be a directory already. Nothing that the archive says is followed: each entry is made
// in a directory that the archive named before and that is open here, and what has no place in one, is no
// file, directory or link that stays below the top, is left out. A file is there whole or not at all.
func (c *Copy) Unpack(ctx context.Context, r io.Reader, to string) error {
	u := &unpacker{Copy: c, tree: maker{to: filepath.Clean(to), named: c.named || !canName()}, waiting: newBatch(), making: newBatch()}
	br := bufio.NewReaderSize(r, streamBuffer)
	err := u.read(ctx, tar.NewReader(br))
	if e := u.flush(); err == nil { // what came before an error is whole
		err = e
	}
	if e := u.wait(); err == nil {
		err = e
	}
	u.tree.leaveAll()
	u.tellLeft()
	if err == nil {
		err = rest(br)
	}
	return err
}

// unpacker reads an archive, and has a second goroutine make the entries that were read while it reads
// the next.
type unpacker struct {
	*Copy
	begun   bool
	waiting *batch // that are read

	busy   sync.WaitGroup // one goroutine at most, which has the rest meanwhile
	making *batch
	tree   maker
}

// batch is some entries, in their order.
type batch struct {
	entries []entry
	arena   []byte // of their content
	err     error  // of making them
}

func newBatch() *batch {
	return &batch{entries: make([]entry, 0, madeAtOnce), arena: make([]byte, 0, madeArena)}
}

func (b *batch) clear() {
	clear(b.entries)
	b.entries, b.arena, b.err = b.entries[:0], b.arena[:0], nil
}

// entry is what is wanted of an entry of an archive. A header is not kept: what else it holds may be large.
type entry struct {
	kind   byte
	name   string // in the archive
	rel    string // below the top, which is ""
	target string // of a link
	size   int64
	mode   fs.FileMode
	time   time.Time
	data   []byte // of a small file
}

// read reads an archive to its end. Each entry counts, so that none goes on for ever.
func (u *unpacker) read(ctx context.Context, tr *tar.Reader) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := tr.Next()
		switch {
		case err == io.EOF && !u.begun:
			return fault.New(fault.Unavailable, "the archive is empty")
		case err == io.EOF:
			return nil
		case err != nil:
			return u.brokeOff(err)
		}
		if err := u.spend(h.Name, h.Size); err != nil {
			return err
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		e, why := entryOf(h)
		if why != "" {
			u.Left(h.Name, why)
			continue
		}
		if err := u.take(tr, &e); err != nil {
			return err
		}
	}
}

// entryOf returns what is wanted of an entry, or why there is nothing. The permissions are without
// set-user-id bits.
func entryOf(h *tar.Header) (e entry, why string) {
	if _, why = below(h.Name); why == "" && len(h.Linkname) > maxPath {
		why = "the path that it leads to is too long"
	}
	if why != "" {
		return entry{}, why
	}
	e = entry{kind: h.Typeflag, name: strings.Clone(h.Name), size: h.Size, mode: fs.FileMode(h.Mode) & fs.ModePerm, time: h.ModTime}
	e.rel, _ = below(e.name)
	switch e.kind {
	case tar.TypeGNUSparse:
		e.kind = tar.TypeReg
	case tar.TypeSymlink, tar.TypeLink:
		e.target = strings.Clone(h.Linkname)
	}
	return e, ""
}

// take has an entry made: soon, if it is small, else now.
func (u *unpacker) take(tr *tar.Reader, e *entry) error {
	if !u.begun || e.kind == tar.TypeReg && e.size > madeSmall {
		err := u.flush()
		if err == nil {
			err = u.wait()
		}
		if err != nil {
			return err
		}
		content := &counted{r: tr, c: u.Copy, name: path.Base(e.name), size: e.size}
		if !u.begun {
			u.begun = true
			return u.tree.begin(e, content)
		}
		err = u.tree.note(e, u.tree.make(e, content))
		u.tellLeft()
		return err
	}
	b := u.waiting
	if len(b.entries) == madeAtOnce || cap(b.arena)-len(b.arena) < int(e.size) && e.kind == tar.TypeReg {
		if err := u.flush(); err != nil {
			return err
		}
		b = u.waiting
	}
	if e.kind == tar.TypeReg && e.size > 0 {
		at := len(b.arena)
		e.data = b.arena[at : at+int(e.size)]
		content := &counted{r: tr, c: u.Copy, name: path.Base(e.name), size: e.size}
		if n, err := io.ReadFull(content, e.data); err != nil {
			return cut(e, int64(n), err)
		}
		b.arena = b.arena[:at+len(e.data)]
	}
	b.entries = append(b.entries, *e)
	return nil
}

// cut is the error of a file that the archive does not have whole.
func cut(e *entry, done int64, err error) error {
	return fault.Wrap(fault.Unavailable, err, "%s broke off after %d of %d bytes", e.name, done, e.size)
}

// flush begins to make what waits, once what was begun before is made.
func (u *unpacker) flush() error {
	if len(u.waiting.entries) == 0 {
		return nil
	}
	if err := u.wait(); err != nil {
		u.waiting.clear() // where one cannot be made, neither can the next
		return err
	}
	u.waiting, u.making = u.making, u.waiting
	u.busy.Go(func() { u.making.err = u.tree.makeAll(u.making.entries) })
	return nil
}

// wait waits for what is being made.
func (u *unpacker) wait() error {
	u.busy.Wait()
	u.tellLeft()
	err := u.making.err
	u.making.clear()
	return err
}

// tellLeft tells what was left out. Nothing is being made meanwhile.
func (u *unpacker) tellLeft() {
	for _, l := range u.tree.left {
		u.Left(l.name, l.why)
	}
	u.tree.left = u.tree.left[:0]
}

// endsAll reports whether after an error no other entry can be made, either.
func endsAll(err error) bool {
	for _, one := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}
