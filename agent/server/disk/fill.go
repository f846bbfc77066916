// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"archive/tar"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/linux/sparse"
)

// filler makes the files of an archive that is not trusted. It makes each as a name in a directory that it opened below one of the disk's,
// without following a link.
type filler struct {
	ctx  context.Context
	in   *tar.Reader
	tops map[string]int // open directories, by their paths without slashes around
	buf  []byte

	parent int    // the directory of the last entry; -1: none
	where  string // its path
	times  [2]unix.Timespec
}

// Fill makes what an archive has in directories, which are those of Read, and empty. It is on the disk when Fill returns. After an error a part is there.
func Fill(ctx context.Context, r io.Reader, at string, all []string) (err error) {
	f := &filler{ctx: ctx, in: tar.NewReader(r), tops: make(map[string]int), buf: make([]byte, copyStep), parent: -1}
	defer func() {
		for _, fd := range f.tops {
			_ = unix.Close(fd)
		}
	}()
	for _, dir := range all {
		fd, err := openTop(at + dir)
		if err != nil {
			return failed(dir, err)
		}
		f.tops[strings.Trim(dir, "/")] = fd
	}
	for {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		h, err := f.in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return notWhole(err)
		}
		if err := f.entry(h); err != nil {
			f.leave()
			return failed(h.Name, err)
		}
	}
	f.leave()
	if _, err := io.Copy(io.Discard, r); err != nil { // what stands behind the archive's end
		return err
	}
	for dir, fd := range f.tops {
		if err := unix.Syncfs(fd); err != nil {
			return failed(dir, err)
		}
	}
	return nil
}

// notWhole returns an error with the code Invalid if err says that the archive is malformed or cut off, and else err.
func notWhole(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrFieldTooLong) {
		return fault.New(fault.Invalid, "what the disk is to be filled from is no archive, or not a whole one: %s", message.Clip(err.Error(), 200))
	}
	return err
}

func invalid(h *tar.Header, what string) error {
	return fault.New(fault.Invalid, "the archive's entry %q %s", message.Clip(wire.EscapeName(h.Name), 200), what)
}

// split returns the clean path of an entry.
func split(h *tar.Header, name string) (string, error) {
	if len(name) > maxPath {
		return "", invalid(h, "has a path that is too long")
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		switch part {
		case "", ".":
		case "..":
			return "", invalid(h, `leads up, by ".."`)
		default:
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/"), nil
}

// top returns the directory of the disk that a path is in, and the path below it; -1 if it is in none.
func (f *filler) top(p string) (fd int, below string) {
	for dir, fd := range f.tops {
		if p == dir {
			return fd, "."
		}
		if below, ok := strings.CutPrefix(p, dir+"/"); ok {
			return fd, below
		}
	}
	return -1, ""
}

func (f *filler) entry(h *tar.Header) error {
	name, err := split(h, h.Name)
	if err != nil {
		return err
	}
	top, below := f.top(name)
	switch {
	case h.Typeflag == tar.TypeXGlobalHeader, top < 0 && h.Typeflag == tar.TypeDir:
		return nil // a directory above the disk's
	case top < 0:
		return invalid(h, "is not on the disk")
	case below == "." && h.Typeflag != tar.TypeDir:
		return invalid(h, "is one of the disk's directories, and no directory")
	case below == ".":
		f.leave()
		return f.finish(top, h)
	}
	if err := f.enter(path.Dir(name)); err != nil {
		return err
	}
	return f.make(h, path.Base(name))
}

// enter opens a directory as the parent, and makes it if it is missing.
func (f *filler) enter(dir string) error {
	if f.parent >= 0 && f.where == dir {
		return nil
	}
	var fd int
	var err error
	// From the last one where that leads on: a path from the top costs as much as it is long.
	if below, ok := strings.CutPrefix(dir, f.where+"/"); ok && f.parent >= 0 {
		fd, err = descend(f.parent, below, true)
	} else {
		fd, err = f.open(dir, true)
	}
	if err != nil {
		return err
	}
	f.leave()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return err
	}
	f.parent, f.where = fd, dir
	f.times = [2]unix.Timespec{st.Atim, st.Mtim}
	return nil
}

// leave closes the parent, and gives it back the times that it had before entries were made in it.
func (f *filler) leave() {
	if f.parent < 0 {
		return
	}
	_ = unix.UtimesNanoAt(f.parent, "", f.times[:], unix.AT_EMPTY_PATH)
	_ = unix.Close(f.parent)
	f.parent = -1
}

// open opens a directory by its path.
func (f *filler) open(dir string, create bool) (int, error) {
	top, below := f.top(dir)
	if top < 0 {
		return -1, unix.ENOENT
	}
	return descend(top, below, create)
}

// descend opens a directory below another one.
func descend(top int, below string, create bool) (int, error) {
	how := unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	if len(below) < unix.PathMax {
		fd, err := dirs.Openat2(top, below, how)
		if err == nil || err != unix.ENOENT || !create {
			return fd, err
		}
	}
	fd, err := dirs.Openat2(top, ".", how)
	for part := range strings.SplitSeq(below, "/") {
		if err != nil {
			return -1, err
		}
		next, nextErr := dirs.Openat2(fd, part, how)
		if nextErr == unix.ENOENT && create {
			if nextErr = unix.Mkdirat(fd, part, 0o755); nextErr == nil {
				next, nextErr = dirs.Openat2(fd, part, how)
			}
		}
		_ = unix.Close(fd)
		fd, err = next, nextErr
	}
	return fd, err
}

// make makes the entry in the parent under a name. A file or an empty directory that has the name is replaced by what is neither
// a directory nor a hard link; a directory that has it is kept by one.
func (f *filler) make(h *tar.Header, name string) error {
	if h.Typeflag == tar.TypeDir {
		if err := unix.Mkdirat(f.parent, name, 0o700); err != nil && err != unix.EEXIST {
			return err
		}
		fd, err := unix.Openat(f.parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return f.finish(fd, h)
	}
	if h.Typeflag == tar.TypeLink {
		return f.link(h, name)
	}
	err := unix.Unlinkat(f.parent, name, 0)
	if err == unix.EISDIR || err == unix.EPERM {
		err = unix.Unlinkat(f.parent, name, unix.AT_REMOVEDIR) // the home of a new disk
	}
	if err != nil && err != unix.ENOENT {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return f.file(h, name)
	case tar.TypeSymlink:
		if err := unix.Symlinkat(h.Linkname, f.parent, name); err != nil {
			return err
		}
	case tar.TypeFifo:
		if err := unix.Mknodat(f.parent, name, unix.S_IFIFO|0o600, 0); err != nil {
			return err
		}
	default:
		return invalid(h, "is of a kind that no disk has")
	}
	if err := unix.Fchownat(f.parent, name, h.Uid, h.Gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeFifo {
		if err := unix.Fchmodat(f.parent, name, uint32(h.Mode)&0o7777, 0); err != nil {
			return err
		}
	}
	return unix.UtimesNanoAt(f.parent, name, times(h), unix.AT_SYMLINK_NOFOLLOW)
}

// link makes a hard link to a file that an earlier entry made.
func (f *filler) link(h *tar.Header, name string) error {
	target, err := split(h, h.Linkname)
	if err != nil {
		return err
	}
	fd, err := f.open(path.Dir(target), false)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstatat(fd, path.Base(target), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return invalid(h, "is a link to a directory")
	}
	return unix.Linkat(fd, path.Base(target), f.parent, name, 0)
}

func (f *filler) file(h *tar.Header, name string) error {
	fd, err := unix.Openat(f.parent, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if parts, wrong := sparse.Parse(h, f.in); wrong != nil {
		err = invalid(h, wrong.Error())
	} else if parts != nil {
		err = f.sparse(fd, h, parts)
	} else if err = unix.Ftruncate(fd, h.Size); err == nil {
		err = f.copy(fd, 0, h.Size)
	}
	if err != nil {
		return err
	}
	return f.finish(fd, h)
}

// copy copies the next length bytes of the archive to an offset of a file. Blocks of zeros become holes.
func (f *filler) copy(fd int, at, length int64) error {
	for end := at + length; at < end; {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(f.in, f.buf[:min(int64(len(f.buf)), end-at)])
		if err != nil {
			return notWhole(err)
		}
		for done := 0; done < n && !zero(f.buf[:n]); {
			m, err := unix.Pwrite(fd, f.buf[done:n], at+int64(done))
			if err != nil && err != unix.EINTR {
				return err
			}
			done += max(0, m)
		}
		at += int64(n)
	}
	return nil
}

func zero(b []byte) bool { return b[0] == 0 && string(b[:len(b)-1]) == string(b[1:]) }

// finish sets the owner, mode, attributes and time of the file that an entry made.
func (f *filler) finish(fd int, h *tar.Header) error {
	if err := unix.Fchown(fd, h.Uid, h.Gid); err != nil {
		return err
	}
	if err := unix.Fchmod(fd, uint32(h.Mode)&0o7777); err != nil {
		return err
	}
	for record, value := range h.PAXRecords {
		name, ok := strings.CutPrefix(record, attributeRecord)
		if !ok {
			if name, ok = strings.CutPrefix(record, bareRecord); !ok {
				continue
			}
			raw, err := hex.DecodeString(name)
			if err != nil || !strings.HasPrefix(value, "=") {
				return invalid(h, "has an attribute that cannot be read")
			}
			name, value = string(raw), value[1:]
		}
		if !portable(name) {
			continue
		}
		if err := unix.Fsetxattr(fd, name, []byte(value), 0); err != nil {
			return err
		}
	}
	return unix.UtimesNanoAt(fd, "", times(h), unix.AT_EMPTY_PATH)
}

func times(h *tar.Header) []unix.Timespec {
	return []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: h.ModTime.Unix(), Nsec: int64(h.ModTime.Nanosecond())}}
}
