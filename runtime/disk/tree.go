// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"sandpit.dev/fault"
)

// Bounds of a tree that is read: each entry is held in memory.
const (
	maxEntries = 2_000_000
	maxNames   = 512 << 20 // bytes of all paths
)

// Tree is what a disk has, without what the files hold.
type Tree struct{ entries map[string]*entry }

// entry is what is at a path.
type entry struct {
	kind       byte // of package tar; never TypeLink
	mode       int64
	uid, gid   int
	time       int64 // seconds
	size       int64
	link       string // of a symbolic one
	attributes string
	sum        [sha256.Size]byte
	group      string // first path of a file with several
}

// ownFiles are those that a container has from its Engine, and of the agent.
var ownFiles = [...]string{".sandpit", ".dockerenv", "dev", "proc", "sys", "run/.containerenv", "etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab"}

// own reports whether a path is one of those, or below one.
func own(path string) bool {
	return slices.ContainsFunc(ownFiles[:], func(f string) bool { return path == f || strings.HasPrefix(path, f+"/") })
}

// Read reads an archive of a disk.
func Read(ctx context.Context, r io.Reader) (*Tree, error) {
	t := &Tree{entries: make(map[string]*entry)}
	names := 0
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		switch {
		case err == io.EOF:
			return t, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, broken(err)
		}
		path := clean(h.Name)
		if path == "" || own(path) {
			continue
		}
		if names += len(path) + len(h.Linkname); len(t.entries) == maxEntries || names > maxNames {
			return nil, fault.New(fault.TooLarge, "the disk has more than %d files, or paths of more than %d MiB", maxEntries, maxNames>>20).
				WithRemedy("delete some of the sandbox's files")
		}
		e, err := t.read(h, archive)
		if err != nil {
			return nil, err
		}
		if e != nil {
			t.entries[path] = e
		}
	}
}

func (t *Tree) read(h *tar.Header, content io.Reader) (*entry, error) {
	e := &entry{kind: h.Typeflag, mode: h.Mode & 0o7777, uid: h.Uid, gid: h.Gid, time: h.ModTime.Unix()}
	switch h.Typeflag {
	case tar.TypeReg:
		var err error
		if e.size, e.sum, err = sumOf(h, content); err != nil {
			return nil, broken(err)
		}
	case tar.TypeLink:
		first := t.entries[clean(h.Linkname)]
		if first == nil {
			return nil, broken(errors.New("it has a link to what it lacks"))
		}
		first.group = cmp.Or(first.group, clean(h.Linkname))
		return first, nil
	case tar.TypeSymlink:
		e.link = h.Linkname
	case tar.TypeDir, tar.TypeFifo:
	default:
		return nil, nil // no sandbox makes devices
	}
	var list []string
	for name, value := range h.PAXRecords {
		if strings.HasPrefix(name, attributeRecord) || strings.HasPrefix(name, bareRecord) {
			list = append(list, name+"="+value)
		}
	}
	slices.Sort(list)
	e.attributes = strings.Join(list, "\x00")
	return e, nil
}

// attributeRecord is what the names of an entry's extended attributes have before them.
const attributeRecord = "SCHILY.xattr."

// bareRecord is what the names, in hex, of those have before them that have no value, or a "=" in their names: agents write
// it, with a "=" before the value.
const bareRecord = "SANDPIT.xattr."

// same reports whether two files differ in nothing that lists of changes tell.
func (e *entry) same(o *entry) bool {
	if e.kind != o.kind || e.mode != o.mode || e.uid != o.uid || e.gid != o.gid || e.attributes != o.attributes {
		return false
	}
	return e.kind == tar.TypeDir || e.time == o.time && e.size == o.size && e.link == o.link && e.sum == o.sum
}

func clean(name string) string {
	return strings.Trim(strings.TrimPrefix(name, "./"), "/")
}

// broken returns the error of an archive that ends early or is malformed.
func broken(err error) error {
	if _, told := errors.AsType[*fault.Error](err); told {
		return err // who sends it knows why
	}
	return fault.Wrap(fault.Unavailable, &tornError{err}, "the archive of the disk cannot be read (%s)", fmt.Sprint(err)).
		WithRemedy("try again, or stop the sandbox first: its files may have changed meanwhile")
}

// tornError is of an archive that came whole, and is none.
type tornError struct{ error }

func (t *tornError) Unwrap() error { return t.error }

// IsTorn reports whether an archive ended before its end, though the Engine sent no more. That is how it ends where a
// file became shorter than its entry says while the Engine read it.
func IsTorn(err error) bool {
	_, ok := errors.AsType[*tornError](err)
	return ok
}
