// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// importNice is by how much an import's thread yields to the server's others.
const importNice = 10

// Import makes the snapshot id from an archive as Export writes it. The archive is
// hostile: every path stays in the snapshot, no link is followed, nothing becomes a
// device or gives rights outside, and names, attributes and contents (holes counted as
// zeros, entries as half a KiB each) are together at most maxBytes. It returns the bytes
// that are kept, -1 where nothing counts them. Trailing data is not read.
//
// All or nothing, and on the disk when it returns. r may be as slow as a client: Import waits
// for it alone and holds nothing that another one waits for. Who calls bounds how many
// there are. Errors: Invalid for an archive that is
// not of this form or reaches out, TooLarge, Exists, Exhausted, and r's.
func (s *Store) Import(ctx context.Context, id string, r io.Reader, maxBytes int64) (int64, error) {
	return s.importSnapshot(ctx, id, r, maxBytes, false)
}

func (s *Store) importSnapshot(ctx context.Context, id string, r io.Reader, maxBytes int64, backup bool) (int64, error) {
	if err := checkID(id); err != nil {
		return 0, err
	}
	leave, err := s.enterNew()
	if err != nil {
		return 0, err
	}
	defer leave()
	if s.hasSnapshot(id) {
		return 0, fault.New(fault.Exists, "the snapshot %s exists", id)
	}
	size := int64(-1)
	err = s.stageImport(id, func(slot *slot) error {
		fd, err := s.emptyLayer(slot.dir, id, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := yielding(func() error { return importTree(ctx, fd, "upper", r, maxBytes, backup) }); err != nil {
			return err
		}
		if size = s.holds(fd, true); size >= 0 {
			if err := s.setSize(fd, size); err != nil {
				return err
			}
		}
		return s.publish(slot, id, fd)
	})
	switch {
	case err == unix.EEXIST:
		return 0, fault.New(fault.Exists, "the snapshot %s exists", id)
	case ctx.Err() != nil && err != nil:
		return 0, ctx.Err()
	case err != nil:
		return 0, failed(err, "the snapshot %s cannot be imported", id)
	}
	return size, nil
}

// stageImport is stage for an import: with a directory of its own inside the slot in which
// nobody else waits for it, and where Open finds it when the server is killed. No id has a
// dot in it.
func (s *Store) stageImport(id string, f func(*slot) error) error {
	shared, name := s.staging.at(id).dir, fmt.Sprintf("import.%x", s.trash.next())
	dir, err := ensureDir(shared, name)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	err = f(&slot{dir: dir})
	left := ignore(s.trash.put(dir, id), unix.ENOENT)
	if left == nil {
		s.trash.kick()
		left = unix.Unlinkat(shared, name, unix.AT_REMOVEDIR)
	}
	if left != nil {
		s.log.Error("what is left of an import stays until the next start", "id", id, "error", left)
	}
	return err
}

// yielding runs f while its thread gives way to the server's others.
func yielding(f func() error) error {
	runtime.LockOSThread()
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return f()
	}
	nice := 20 - raw                                                     // as the system call has it
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, min(19, nice+importNice)) // without it all else holds
	defer func() {
		if unix.Setpriority(unix.PRIO_PROCESS, 0, nice) == nil {
			runtime.UnlockOSThread() // else the thread ends with this goroutine
		}
	}()
	return f()
}

// importTree fills a tree of what is at fd; backup says that the archive is of [Store.ExportDisk].
func importTree(ctx context.Context, fd int, tree string, r io.Reader, maxBytes int64, backup bool) error {
	top, err := openDir(fd, tree)
	if err != nil {
		return err
	}
	defer unix.Close(top)
	source := &tracked{ctx: ctx, r: r}
	im := &importer{tar: tar.NewReader(source), backup: backup, top: top, parent: -1, left: maxBytes, most: maxBytes}
	for {
		h, err := im.tar.Next()
		if err == io.EOF && !source.ended {
			break
		}
		if err == io.EOF {
			err = fault.New(fault.Invalid, "the archive is cut off: it has no end")
		}
		if err == nil {
			err = im.entry(h)
		}
		if source.err != nil {
			err = source.err
		} else if err != nil && !isFault(err) {
			err = badEntry(err, h)
		}
		if err != nil {
			im.release()
			return err
		}
	}
	return im.release()
}

// tracked tells an error of the reader from one of what is read, and an archive's end
// from that of its reader.
type tracked struct {
	ctx   context.Context
	r     io.Reader
	err   error
	ended bool // there was nothing to read
}

func (t *tracked) Read(p []byte) (int, error) {
	if err := t.ctx.Err(); err != nil {
		t.err = err
		return 0, err
	}
	n, err := t.r.Read(p)
	if err != nil && err != io.EOF {
		t.err = err
	}
	t.ended = n == 0 && err == io.EOF
	return n, err
}

func isFault(err error) bool {
	var f *fault.Error
	return errors.As(err, &f)
}

// badEntry says what is wrong with an entry, where it is the archive's fault.
func badEntry(err error, h *tar.Header) error {
	var errno unix.Errno
	if errors.As(err, &errno) {
		switch errno {
		case unix.ENAMETOOLONG, unix.EINVAL, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EEXIST, unix.EISDIR, unix.EMLINK, unix.EPERM,
			unix.ERANGE, unix.E2BIG, unix.ENOTEMPTY, unix.EOPNOTSUPP, unix.EXDEV:
		default:
			return err // the disk's
		}
	}
	if h == nil {
		return fault.Wrap(fault.Invalid, err, "the archive cannot be read (%s)", err)
	}
	return invalidEntry(h, "cannot be made (%s)", err)
}

func invalidEntry(h *tar.Header, format string, args ...any) error {
	name := h.Name
	if len(name) > 100 {
		name = name[:100] + "…"
	}
	return fault.New(fault.Invalid, "the archive's entry %q %s", name, fmt.Sprintf(format, args...))
}
