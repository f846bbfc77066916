// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"archive/tar"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/fault"
)

const (
	maxNames = 1 << 20  // of one directory
	maxLinks = 64 << 20 // bytes of what is remembered of files with several names
	linkCost = 96       // of one, beside its path
	copyStep = 64 << 10
)

// reader writes directories as an archive. It has one directory open at a time, and goes back by "..": however deep a tree is, it
// needs no more descriptors.
type reader struct {
	ctx    context.Context
	out    *tar.Writer
	skip   func(name string) bool
	path   []byte // of the directory that is read, with a slash at its end
	links  map[inode]*linked
	linked int // bytes of what is in links
	buf    []byte
}

type inode struct{ dev, ino uint64 }

// linked is a file with several names that has been written.
type linked struct {
	path string
	left uint64 // names that may still come
}

// Read writes an archive of directories, by their absolute paths, which are below the directory at, if that is not "". Names that skip reports are left
// out. Nothing may change them meanwhile.
func Read(ctx context.Context, w io.Writer, at string, all []string, skip func(name string) bool) error {
	r := &reader{ctx: ctx, out: tar.NewWriter(w), skip: skip, links: make(map[inode]*linked), buf: make([]byte, copyStep)}
	for _, dir := range slices.Sorted(slices.Values(all)) {
		fd, err := openTop(at + dir)
		if err != nil {
			return failed(dir, err)
		}
		r.path = append(r.path[:0], strings.Trim(dir, "/")+"/"...)
		fd, err = r.directory(fd)
		_ = unix.Close(fd)
		if err != nil {
			return failed("/"+string(r.path), err)
		}
	}
	return failed("", r.out.Close())
}

// openTop opens one of the disk's directories.
func openTop(dir string) (int, error) {
	return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// failed returns the error of a disk that cannot be read or filled, with the path at which it cannot; nil if err is.
func failed(at string, err error) error {
	if err == nil {
		return nil
	}
	if _, told := errors.AsType[*fault.Error](err); told {
		return err
	}
	at = message.Clip(at, 400)
	if errors.Is(err, tar.ErrFieldTooLong) || errors.Is(err, tar.ErrHeader) || errors.Is(err, dirs.ErrMany) {
		return fault.New(fault.Unsupported, "the disk cannot be kept: at %q is a name, or are attributes or too many files, which no archive holds: %s", at, message.Of(err)).
			WithRemedy("remove or rename it in the sandbox")
	}
	if errors.Is(err, tar.ErrWriteTooLong) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.New(fault.Unavailable, "the disk changed while it was read, at %q", at).WithRemedy("try again")
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return message.NoSpace(err, "the disk cannot be filled, at %q", at)
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return fault.New(fault.Internal, "the disk cannot be read or written, at %q: %s", at, message.Of(errno))
	}
	return err
}

// directory writes the directory fd, whose path is r.path, and what is in it. It returns a descriptor of the directory that the caller is to close
// in the place of fd, also with an error.
func (r *reader) directory(fd int) (int, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fd, err
	}
	if err := r.entry(fd, &st, &tar.Header{Typeflag: tar.TypeDir, Name: string(r.path)}); err != nil {
		return fd, err
	}
	names, err := dirs.Read(fd, maxNames)
	if err != nil {
		return fd, err
	}
	names.Sort()
	var below []string
	for n := range names.Len() {
		if err := r.ctx.Err(); err != nil {
			return fd, err
		}
		name := string(names.Name(n))
		if r.skip(name) {
			continue
		}
		isDir, err := r.file(fd, st.Dev, name)
		if err != nil {
			return fd, err
		}
		if isDir {
			below = append(below, name)
		}
	}
	for _, name := range below {
		if fd, err = r.below(fd, &st, name); err != nil {
			return fd, err
		}
	}
	return fd, nil
}

// below writes a directory in the directory fd, which it closes meanwhile. It returns what directory does.
func (r *reader) below(fd int, st *unix.Stat_t, name string) (int, error) {
	length := len(r.path)
	if length+len(name) >= maxPath {
		return fd, fault.New(fault.Unsupported, "the disk cannot be kept: it has paths of more than %d bytes", maxPath).
			WithRemedy("remove the directories that lie so deep in the sandbox")
	}
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	child, err := unix.Openat(fd, name, flags, 0)
	if err != nil {
		return fd, err
	}
	_ = unix.Close(fd)
	r.path = append(append(r.path, name...), '/')
	child, err = r.directory(child)
	if err != nil {
		return child, err
	}
	r.path = r.path[:length]
	fd, err = unix.Openat(child, "..", flags, 0)
	if err != nil {
		return child, err
	}
	_ = unix.Close(child)
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return fd, err
	}
	if now.Dev != st.Dev || now.Ino != st.Ino {
		return fd, io.ErrUnexpectedEOF
	}
	return fd, nil
}

// file writes an entry of a directory, unless it is a directory itself, which it reports.
func (r *reader) file(dir int, dev uint64, name string) (isDir bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, err
	}
	h := &tar.Header{Name: string(r.path) + name}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return st.Dev == dev, nil // else something is mounted there, which is not the disk's
	case unix.S_IFREG:
		h.Typeflag, h.Size = tar.TypeReg, st.Size
	case unix.S_IFLNK:
		h.Typeflag = tar.TypeSymlink
		var b [unix.PathMax]byte
		n, err := unix.Readlinkat(dir, name, b[:])
		if err != nil {
			return false, err
		}
		h.Linkname = string(b[:n])
	case unix.S_IFIFO:
		h.Typeflag = tar.TypeFifo
	default:
		return false, nil
	}
	if st.Nlink > 1 {
		if h.Linkname, err = r.first(&st, h); err != nil {
			return false, err
		}
		if h.Typeflag == tar.TypeLink {
			h.Size = 0
			h.Format = tar.FormatPAX
			return false, r.out.WriteHeader(h)
		}
	}
	if h.Typeflag != tar.TypeReg {
		return false, r.entry(-1, &st, h)
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	if st.Blocks*512 < st.Size {
		if done, err := r.sparse(fd, &st, h); done || err != nil {
			return false, err
		}
	}
	if err := r.entry(fd, &st, h); err != nil {
		return false, err
	}
	return false, r.copy(fd, 0, st.Size)
}

// first makes h a hard link if its file was written already, and else remembers the file. It returns what h is a link to.
func (r *reader) first(st *unix.Stat_t, h *tar.Header) (string, error) {
	id := inode{st.Dev, st.Ino}
	if f := r.links[id]; f != nil {
		if f.left--; f.left == 0 {
			delete(r.links, id)
			r.linked -= len(f.path) + linkCost
		}
		h.Typeflag = tar.TypeLink
		return f.path, nil
	}
	if r.linked += len(h.Name) + linkCost; r.linked > maxLinks {
		return "", fault.New(fault.Unsupported, "the disk cannot be kept: it has too many files with several names")
	}
	r.links[id] = &linked{h.Name, uint64(st.Nlink) - 1}
	return h.Linkname, nil
}

// entry writes the header of a file with its owner, mode, time and, unless fd is below 0, extended attributes.
func (r *reader) entry(fd int, st *unix.Stat_t, h *tar.Header) error {
	h.Format = tar.FormatPAX
	h.Mode = int64(st.Mode & 0o7777)
	h.Uid, h.Gid = int(st.Uid), int(st.Gid)
	h.ModTime = time.Unix(st.Mtim.Unix())
	if fd >= 0 {
		if err := attributes(fd, h); err != nil {
			return err
		}
	}
	return r.out.WriteHeader(h)
}

// portable reports whether archives have an extended attribute: those that users set and access lists, but none that gives a file rights.
func portable(name string) bool {
	if strings.HasPrefix(name, "user.") {
		return !strings.HasPrefix(name, "user.overlay.")
	}
	return name == "system.posix_acl_access" || name == "system.posix_acl_default"
}

// attributes sets the extended attributes of a file in a header.
func attributes(fd int, h *tar.Header) error {
	var few [1 << 10]byte
	n, err := unix.Flistxattr(fd, few[:])
	list := few[:max(0, n)]
	if err == unix.ERANGE {
		list = make([]byte, 64<<10) // the most that the kernel lists
		n, err = unix.Flistxattr(fd, list)
		list = list[:max(0, n)]
	}
	if err == unix.EOPNOTSUPP {
		return nil
	}
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(string(list), "\x00") {
		if !portable(name) {
			continue
		}
		value := make([]byte, 64<<10) // the most that the kernel keeps
		n, err := unix.Fgetxattr(fd, name, value)
		if err != nil {
			return err
		}
		if h.PAXRecords == nil {
			h.PAXRecords = make(map[string]string)
		}
		if n == 0 || strings.Contains(name, "=") {
			h.PAXRecords[bareRecord+hex.EncodeToString([]byte(name))] = "=" + string(value[:n])
		} else {
			h.PAXRecords[attributeRecord+name] = string(value[:n])
		}
	}
	return nil
}

// copy writes length bytes of a file from an offset on.
func (r *reader) copy(fd int, at, length int64) error {
	for end := at + length; at < end; {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		n, err := unix.Pread(fd, r.buf[:min(int64(len(r.buf)), end-at)], at)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return cmp.Or(err, io.ErrUnexpectedEOF)
		}
		if _, err := r.out.Write(r.buf[:n]); err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}
