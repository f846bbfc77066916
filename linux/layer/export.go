// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"archive/tar"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// maxLinkBytes bounds what an export remembers of files with several names.
const maxLinkBytes = 256 << 20

// Export writes a snapshot as a tar archive in the form of an OCI image layer, with
// whiteouts for what was deleted of the image: owners, modes, times in nanoseconds,
// hard links, users' extended attributes and ACLs. Sockets and devices are left out,
// and holes are written as zeros. Reading it stops with ctx. Errors: Invalid, NotFound,
// Unsupported for what no archive can hold, and w's.
func (s *Store) Export(ctx context.Context, snapshot string, w io.Writer) error {
	return s.export(ctx, snapshot, w, false)
}

// ExportDisk is Export for a backup: a file with holes is written without them
// ([sparse.Record]), so that the archive is as long as what the disk holds. It writes
// snapshots of volumes too.
func (s *Store) ExportDisk(ctx context.Context, snapshot string, w io.Writer) error {
	return s.export(ctx, snapshot, w, true)
}

func (s *Store) export(ctx context.Context, snapshot string, w io.Writer, backup bool) error {
	if err := checkID(snapshot); err != nil {
		return err
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	top, err := s.openSnapshot(snapshot)
	if err != nil {
		return err
	}
	defer unix.Close(top)
	tree := "upper"
	if backup && unix.Faccessat(top, tree, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) == unix.ENOENT {
		tree = volumeTree
	}
	e := &exporter{ctx: ctx, w: tar.NewWriter(w), sparse: backup, linked: make(map[uint64]*linkedFile)}
	err = e.root(top, tree)
	if err == nil {
		err = walkTree(ctx, top, tree, e)
	}
	if err == nil {
		err = e.w.Close()
	}
	if errors.Is(err, tar.ErrFieldTooLong) || errors.Is(err, tar.ErrHeader) {
		return fault.Wrap(fault.Unsupported, err, "the snapshot %s has a name or attributes that no archive can hold", snapshot)
	}
	if err != nil && ctx.Err() == nil {
		return failed(err, "the snapshot %s cannot be exported", snapshot)
	}
	return err
}

type exporter struct {
	ctx    context.Context
	w      *tar.Writer
	sparse bool   // holes are left out
	path   []byte // of the directory that is walked, with a slash at its end
	ends   []int  // lengths of path, of the directories above
	linked map[uint64]*linkedFile
	bytes  int // of what is in linked
}

// linkedFile is a file of several names that was written already.
type linkedFile struct {
	path string
	left uint64 // names that may still come
}

// root writes the entry of the top directory.
func (e *exporter) root(top int, tree string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(top, tree, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	fd, err := openDir(top, tree)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return e.write(openNode(fd), &st, &tar.Header{Typeflag: tar.TypeDir, Name: "./"})
}

// enter implements visitor.
func (e *exporter) enter(dir int, name string, st *unix.Stat_t) error {
	fd, err := openDir(dir, name)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	e.ends = append(e.ends, len(e.path))
	e.path = append(append(e.path, name...), '/')
	if len(e.path)+len(whiteoutPrefix)+unix.NAME_MAX > maxArchivePath {
		return fault.New(fault.Unsupported, "the snapshot has paths of more than %d bytes, which an archive cannot hold", maxArchivePath)
	}
	if err := e.write(openNode(fd), st, e.header(tar.TypeDir, "", name)); err != nil {
		return err
	}
	if !isOpaque(fd) {
		return nil
	}
	return e.w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: string(e.path) + opaqueMarker, Mode: 0o600, Format: tar.FormatPAX})
}

// leave implements visitor.
func (e *exporter) leave(int) error {
	if last := len(e.ends) - 1; last >= 0 {
		e.path, e.ends = e.path[:e.ends[last]], e.ends[:last]
	}
	return nil
}

// file implements visitor.
func (e *exporter) file(dir int, name string, st *unix.Stat_t) error {
	if err := e.ctx.Err(); err != nil {
		return err
	}
	if isWhiteout(st) {
		return e.w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: string(e.path) + whiteoutPrefix + name, Mode: 0o600, Format: tar.FormatPAX})
	}
	h := e.header(0, name, name)
	n := namedNode(dir, name)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		h.Typeflag = tar.TypeReg
		h.Size = st.Size
	case unix.S_IFLNK:
		h.Typeflag = tar.TypeSymlink
		var err error
		if h.Linkname, err = readLink(dir, name); err != nil {
			return err
		}
	case unix.S_IFIFO:
		h.Typeflag = tar.TypeFifo
	default:
		return nil
	}
	if st.Nlink > 1 {
		first, err := e.first(st, h.Name)
		if err != nil {
			return err
		}
		if first != "" {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
			return e.w.WriteHeader(h)
		}
	}
	if h.Typeflag == tar.TypeReg && e.sparse && st.Blocks*512 < st.Size {
		return e.sparseFile(n, st, h)
	}
	if err := e.write(n, st, h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	return e.content(dir, name, st)
}

// first returns the name under which a file was written already, or remembers path.
func (e *exporter) first(st *unix.Stat_t, path string) (string, error) {
	if f := e.linked[st.Ino]; f != nil {
		if f.left--; f.left == 0 {
			delete(e.linked, st.Ino)
			e.bytes -= len(f.path) + 64
		}
		return f.path, nil
	}
	if e.bytes += len(path) + 64; e.bytes > maxLinkBytes {
		return "", fault.New(fault.Unsupported, "the snapshot has too many files with several names to be exported")
	}
	e.linked[st.Ino] = &linkedFile{path: path, left: uint64(st.Nlink) - 1}
	return "", nil
}

// header begins the header of an entry; base is the last part of its path.
func (e *exporter) header(kind byte, name, base string) *tar.Header {
	h := &tar.Header{Typeflag: kind, Name: string(e.path) + name}
	if strings.HasPrefix(base, whiteoutPrefix) {
		h.PAXRecords = map[string]string{literalRecord: "1"}
	}
	h.Format = tar.FormatPAX
	return h
}

// write writes the header of an entry with all that the file has beside its content.
func (e *exporter) write(n node, st *unix.Stat_t, h *tar.Header) error {
	h.Format = tar.FormatPAX
	h.Mode = int64(st.Mode & 0o7777)
	h.Uid, h.Gid = int(st.Uid), int(st.Gid)
	h.ModTime = time.Unix(st.Mtim.Unix())
	names, err := n.attrs()
	if err != nil {
		return err
	}
	for _, name := range names {
		if !portable(name) {
			continue
		}
		value, err := n.value(name)
		if err != nil {
			return err
		}
		if h.PAXRecords == nil {
			h.PAXRecords = make(map[string]string)
		}
		if len(value) == 0 || strings.Contains(name, "=") {
			h.PAXRecords[attrRecordHex+hex.EncodeToString([]byte(name))] = "=" + string(value)
		} else {
			h.PAXRecords[attrRecord+name] = string(value)
		}
	}
	return e.w.WriteHeader(h)
}

func (e *exporter) content(dir int, name string, st *unix.Stat_t) error {
	fd, err := openFile(dir, name, st)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "file")
	defer f.Close()
	for left := st.Size; left > 0; {
		if err := e.ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(e.w, f, min(left, copyStep))
		if err != nil {
			return fmt.Errorf("copy a file into the archive: %w", err)
		}
		left -= n
	}
	return nil
}
