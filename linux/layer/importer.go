// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"archive/tar"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/sparse"
)

const (
	maxImportEntries = 10_000_000
	// entryCost is what an entry counts for beside its content and its names: an empty file
	// takes some 360 bytes of a disk's limit, so that an archive has no more entries than
	// that limit holds files.
	entryCost = 512
	maxID     = 1<<16 - 1 // of users and groups
)

// mountPoints are directories of the root over which each sandbox has a file system of its
// own. Where one is something else, no sandbox starts.
var mountPoints = [...]string{"dev", "proc", "sys"}

// An importer makes files of entries. All that it makes is a name in a directory that
// it opened from the top, part by part, without following a link.
type importer struct {
	tar     *tar.Reader
	backup  bool // of the whole of a disk: sparse.Record means something, and all is taken as it was
	top     int
	left    int64 // bytes
	most    int64
	entries int

	// The directory of the last entry: archives go through one after the other.
	parent int // -1: none
	path   string
	times  [2]unix.Timespec // of parent, given back when it is left
	buf    []byte
}

func (im *importer) entry(h *tar.Header) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if im.entries++; im.entries > maxImportEntries {
		return fault.New(fault.TooLarge, "the archive has more than %d entries", maxImportEntries)
	}
	if err := im.spend(entryCost + int64(len(h.Name)) + int64(len(h.Linkname))); err != nil {
		return err
	}
	dir, name, err := cleanPath(h, h.Name)
	if err != nil {
		return err
	}
	if name == "" {
		if h.Typeflag != tar.TypeDir {
			return invalidEntry(h, "is the root, and no directory")
		}
		if err := im.release(); err != nil {
			return err
		}
		return im.setAttributes(openNode(im.top), h)
	}
	if dir == "" && h.Typeflag != tar.TypeDir && slices.Contains(mountPoints[:], name) && !im.backup {
		return invalidEntry(h, "is no directory: a sandbox has its own /%s there", name)
	}
	if err := im.open(dir); err != nil {
		return err
	}
	if strings.HasPrefix(name, whiteoutPrefix) && h.PAXRecords[literalRecord] == "" {
		return im.mark(h, dir, name)
	}
	return im.make(h, name)
}

// cleanPath returns the directory, clean, and the last part of a path in an entry; "" and
// "" for the root.
func cleanPath(h *tar.Header, path string) (dir, name string, err error) {
	if len(path) > maxArchivePath {
		return "", "", invalidEntry(h, "has a path of more than %d bytes", maxArchivePath)
	}
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		switch part {
		case "", ".":
		case "..":
			return "", "", invalidEntry(h, "leads up, by \"..\"")
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return "", "", nil
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], "/"), parts[last], nil
}

// open makes dir the parent; directories that are missing are made.
func (im *importer) open(dir string) error {
	if im.parent >= 0 && im.path == dir {
		return nil
	}
	// From the last one where that leads on, as in most archives: a path from the
	// top costs as much as it is long.
	from, rest := im.top, dir
	if below, ok := strings.CutPrefix(dir, im.path+"/"); ok && im.parent >= 0 {
		from, rest = im.parent, below
	}
	fd, err := im.directory(from, rest, true)
	if err != nil {
		return err
	}
	if err := im.release(); err != nil {
		unix.Close(fd)
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return err
	}
	im.parent, im.path = fd, dir
	im.times = [2]unix.Timespec{st.Atim, st.Mtim}
	return nil
}

// release leaves the parent. It has the times then that its own entry gave it.
func (im *importer) release() error {
	if im.parent < 0 {
		return nil
	}
	err := openNode(im.parent).touch(im.times[0], im.times[1])
	unix.Close(im.parent)
	im.parent = -1
	return err
}

// directory opens a directory by its clean path from another.
func (im *importer) directory(from int, path string, create bool) (int, error) {
	how := unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	fd, err := openDir(from, ".")
	for err == nil && path != "" {
		// As much at a time as the kernel takes.
		part := path
		if len(part) >= unix.PathMax {
			part = part[:strings.LastIndexByte(part[:unix.PathMax], '/')+1]
		}
		rest := path[len(part):]
		part = strings.TrimSuffix(part, "/")
		if part == "" {
			unix.Close(fd)
			return -1, unix.ENAMETOOLONG
		}
		var next int
		next, err = unix.Openat2(fd, part, &how)
		if err == unix.EAGAIN {
			continue
		}
		if err == unix.ENOENT && create {
			next, err = im.makeMissing(fd, part)
		}
		unix.Close(fd)
		fd, path = next, rest
	}
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// makeMissing goes down a path and makes what is missing of it.
func (im *importer) makeMissing(dir int, path string) (int, error) {
	fd, err := openDir(dir, ".")
	for part := range strings.SplitSeq(path, "/") {
		if err != nil {
			return -1, err
		}
		var next int
		next, err = openDir(fd, part)
		if err == unix.ENOENT {
			if err = im.spend(entryCost); err == nil {
				if err = unix.Mkdirat(fd, part, 0o755); err == nil {
					next, err = openDir(fd, part)
				}
			}
		}
		unix.Close(fd)
		fd = next
	}
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// mark makes a whiteout, or marks a directory as opaque.
func (im *importer) mark(h *tar.Header, dir, name string) error {
	if name == opaqueMarker {
		if dir == "" {
			return invalidEntry(h, "hides the whole image, which a layer cannot")
		}
		return unix.Fsetxattr(im.parent, opaqueAttr, []byte("y"), 0)
	}
	if strings.HasPrefix(name, reservedPrefix) {
		return nil // kept by other programs for themselves
	}
	name = strings.TrimPrefix(name, whiteoutPrefix)
	if name == "" || name == "." || name == ".." {
		return invalidEntry(h, "deletes nothing that can be")
	}
	var st unix.Stat_t
	err := unix.Fstatat(im.parent, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == unix.ENOENT:
		return unix.Mknodat(im.parent, name, unix.S_IFCHR, 0)
	case err != nil:
		return err
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return im.hide(name)
	}
	return nil // what is new of that name hides what is deleted
}

// hide makes a directory opaque.
func (im *importer) hide(name string) error {
	fd, err := openDir(im.parent, name)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fsetxattr(fd, opaqueAttr, []byte("y"), 0)
}

// make makes what an entry is of. What has the name already gives way to it where
// neither is a directory.
func (im *importer) make(h *tar.Header, name string) error {
	var st unix.Stat_t
	err := unix.Fstatat(im.parent, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	exists := err == nil
	if err != nil && err != unix.ENOENT {
		return err
	}
	wasDir := exists && st.Mode&unix.S_IFMT == unix.S_IFDIR
	if h.Typeflag == tar.TypeDir {
		return im.makeDir(h, name, &st, exists, wasDir)
	}
	if wasDir {
		return invalidEntry(h, "was a directory before")
	}
	if h.Typeflag == tar.TypeLink {
		return im.link(h, name, exists)
	}
	if exists {
		if err := unix.Unlinkat(im.parent, name, 0); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		return im.file(h, name)
	case tar.TypeSymlink:
		if err := unix.Symlinkat(h.Linkname, im.parent, name); err != nil {
			return err
		}
	case tar.TypeFifo:
		if err := unix.Mknodat(im.parent, name, unix.S_IFIFO|0o600, 0); err != nil {
			return err
		}
	case tar.TypeChar, tar.TypeBlock:
		return invalidEntry(h, "is a device")
	default:
		return invalidEntry(h, "is of the unknown type %q", string(h.Typeflag))
	}
	return im.setAttributes(namedNode(im.parent, name), h)
}

func (im *importer) makeDir(h *tar.Header, name string, st *unix.Stat_t, exists, wasDir bool) error {
	deleted := exists && isWhiteout(st)
	if exists && !wasDir && !deleted {
		return invalidEntry(h, "was no directory before")
	}
	if deleted {
		if err := unix.Unlinkat(im.parent, name, 0); err != nil {
			return err
		}
	}
	if !wasDir {
		if err := unix.Mkdirat(im.parent, name, 0o700); err != nil {
			return err
		}
	}
	if deleted {
		if err := im.hide(name); err != nil {
			return err
		}
	}
	fd, err := openDir(im.parent, name)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return im.setAttributes(openNode(fd), h)
}

// link gives a file that is in the snapshot already another name.
func (im *importer) link(h *tar.Header, name string, exists bool) error {
	dir, base, err := cleanPath(h, h.Linkname)
	if err != nil {
		return err
	}
	if base == "" {
		return invalidEntry(h, "is a link to a directory")
	}
	fd, err := im.directory(im.top, dir, false)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var target, old unix.Stat_t
	if err := unix.Fstatat(fd, base, &target, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if target.Mode&unix.S_IFMT == unix.S_IFDIR || isWhiteout(&target) {
		return invalidEntry(h, "is a link to what is no file")
	}
	if exists {
		err := unix.Fstatat(im.parent, name, &old, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil || old.Ino == target.Ino {
			return err
		}
		if err := unix.Unlinkat(im.parent, name, 0); err != nil {
			return err
		}
	}
	return unix.Linkat(fd, base, im.parent, name, 0)
}

func (im *importer) file(h *tar.Header, name string) error {
	if err := im.spend(h.Size); err != nil {
		return err
	}
	fd, err := unix.Openat(im.parent, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var parts *sparse.Parts
	if im.backup {
		if parts, err = sparse.Parse(h, im.tar); err != nil {
			return invalidEntry(h, "%s", err)
		}
	}
	if parts != nil {
		err = im.sparseContent(fd, h, parts)
	} else {
		err = im.content(fd, 0, h.Size)
		if err == nil {
			err = unix.Ftruncate(fd, h.Size)
		}
	}
	if err != nil {
		return err
	}
	return im.setAttributes(openNode(fd), h)
}

// content writes what the archive has next at an offset of a file, with holes where it is
// zeros.
func (im *importer) content(fd int, offset, size int64) error {
	if im.buf == nil {
		im.buf = make([]byte, 128<<10)
	}
	for at := int64(0); at < size; {
		n, err := io.ReadFull(im.tar, im.buf[:min(int64(len(im.buf)), size-at)])
		if err != nil {
			return fmt.Errorf("read a file of the archive: %w", err)
		}
		if !allZero(im.buf[:n]) {
			for done := 0; done < n; {
				m, err := unix.Pwrite(fd, im.buf[done:n], offset+at+int64(done))
				if err != nil {
					return err
				}
				done += m
			}
		}
		at += int64(n)
	}
	return nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// setAttributes gives what an entry made its owner, mode, attributes and time.
func (im *importer) setAttributes(n node, h *tar.Header) error {
	if h.Uid < 0 || h.Uid > maxID || h.Gid < 0 || h.Gid > maxID {
		return invalidEntry(h, "belongs to %d:%d; ids are 0 to %d", h.Uid, h.Gid, maxID)
	}
	if err := n.chown(h.Uid, h.Gid); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeSymlink {
		if err := n.chmod(uint32(h.Mode) & 0o7777); err != nil {
			return err
		}
		if err := im.attrs(n, h); err != nil {
			return err
		}
	}
	t, err := unix.TimeToTimespec(h.ModTime)
	if err != nil {
		return err
	}
	return n.touch(t, t)
}

func (im *importer) attrs(n node, h *tar.Header) error {
	for key, value := range h.PAXRecords {
		name, ok := strings.CutPrefix(key, attrRecord)
		if !ok {
			if name, ok = strings.CutPrefix(key, attrRecordHex); !ok {
				continue
			}
			raw, err := hex.DecodeString(name)
			if err != nil || !strings.HasPrefix(value, "=") {
				return invalidEntry(h, "has an attribute that cannot be read")
			}
			name, value = string(raw), value[1:]
		}
		if !portable(name) {
			continue
		}
		if err := im.spend(int64(len(name) + len(value))); err != nil {
			return err
		}
		if err := n.set(name, []byte(value)); err != nil {
			return err
		}
	}
	return nil
}

// spend counts bytes that are kept.
func (im *importer) spend(n int64) error {
	if n > im.left {
		return fault.New(fault.TooLarge, "the archive unpacks to more than %d bytes", im.most)
	}
	im.left -= n
	return nil
}
