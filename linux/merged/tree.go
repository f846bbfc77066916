// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package merged

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/printable"
	"sandpit.dev/sandbox"
)

// Tree is the files of a disk. Paths and names are bytes, absolute inside. It is safe for concurrent use until Close.
type Tree struct {
	layers [2]*os.File // the layer, and the image below it; nil: there is none
	fixed  bool
}

// Which of the layers a name is in.
const (
	upper = iota
	lower
)

// New returns the tree of a layer upon an image, of which one may be nil. It closes them. What is fixed does not change any
// more: its files have versions.
func New(layer, image *os.File, fixed bool) *Tree {
	return &Tree{layers: [2]*os.File{layer, image}, fixed: fixed}
}

// Close closes the tree. What was opened in it stays open.
func (t *Tree) Close() error {
	var all []error
	for _, f := range t.layers {
		if f != nil {
			all = append(all, f.Close())
		}
	}
	return errors.Join(all...)
}

// Bounds of a walk.
const (
	maxPath  = 4095
	maxName  = 255
	maxLinks = 40   // as in the kernel
	maxSteps = 8192 // names that are looked up; a step back begins at the top again
)

// place is a directory: what is open of it in each layer, -1 where there is none.
type place [2]int

// found is what a name in a place is.
type found struct {
	in   int // upper or lower
	stat unix.Stat_t
}

func (f *found) is(kind uint32) bool { return f.stat.Mode&unix.S_IFMT == kind }

// spot is what a path leads to: a name in a place, or with no name the top.
type spot struct {
	dir  place
	name string
	path string // without links
	found
}

func (s *spot) close() { s.dir.close() }

func (p *place) close() {
	for i, fd := range p {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		p[i] = -1
	}
}

// top opens the top of the tree.
func (t *Tree) top() (place, error) {
	p := place{-1, -1}
	for i, f := range t.layers {
		if f == nil {
			continue
		}
		var err error
		if p[i], err = openDir(int(f.Fd()), "."); err != nil {
			p.close()
			return p, err
		}
	}
	if p[upper] >= 0 && isOpaque(p[upper]) && p[lower] >= 0 {
		_ = unix.Close(p[lower])
		p[lower] = -1
	}
	return p, nil
}

// resolve is how one name is opened in a directory: nothing else than that very name.
const resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

func openAt(dir int, name string, flags uint64) (int, error) {
	for {
		fd, err := unix.Openat2(dir, name, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: resolve})
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

func openDir(dir int, name string) (int, error) {
	return openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
}

// isOpaque reports whether a directory of a layer hides the one below it.
func isOpaque(fd int) bool {
	var b [2]byte
	n, err := unix.Fgetxattr(fd, "trusted.overlay.opaque", b[:])
	return err == nil && n == 1 && b[0] == 'y'
}

// isWhiteout reports whether a file of a layer stands for that there is none.
func isWhiteout(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0 }

// look finds a name in a directory.
func look(dir place, name string) (f found, err error) {
	for f.in = range dir {
		if dir[f.in] < 0 {
			continue
		}
		err := unix.Fstatat(dir[f.in], name, &f.stat, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && f.in == upper && isWhiteout(&f.stat) {
			return f, unix.ENOENT
		}
		if err != unix.ENOENT {
			return f, err
		}
	}
	return f, unix.ENOENT
}

// down opens a directory that was found in another.
func down(dir place, name string, f *found) (to place, err error) {
	to = place{-1, -1}
	if to[f.in], err = openDir(dir[f.in], name); err != nil {
		return to, err
	}
	if f.in == upper && dir[lower] >= 0 && !isOpaque(to[upper]) {
		below, err := openDir(dir[lower], name)
		switch err {
		case nil:
			to[lower] = below
		case unix.ENOENT, unix.ENOTDIR, unix.ELOOP: // it is in the layer alone, or in the place of something else
		default:
			to.close()
			return to, err
		}
	}
	return to, nil
}

// walk follows a path, and with follow the link that it ends in.
func (t *Tree) walk(ctx context.Context, p string, follow bool) (s spot, err error) {
	if len(p) > maxPath {
		return s, unix.ENAMETOOLONG
	}
	if s.dir, err = t.top(); err != nil {
		return s, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	var done []string
	again := func() error { // from the top
		s.close()
		done = done[:0:0]
		s.dir, err = t.top()
		return err
	}
	rest := parts(p)
	for steps, links := 0, 0; len(rest) > 0; steps++ {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		name := rest[0]
		rest = rest[1:]
		switch {
		case steps == maxSteps:
			return s, unix.ELOOP
		case len(name) > maxName:
			return s, unix.ENAMETOOLONG
		case name == "..":
			if len(done) > 0 {
				rest = append(append([]string{}, done[:len(done)-1]...), rest...)
				if err := again(); err != nil {
					return s, err
				}
			}
			continue
		}
		f, err := look(s.dir, name)
		if err != nil {
			return s, err
		}
		if f.is(unix.S_IFLNK) && (len(rest) > 0 || follow) {
			if links++; links > maxLinks {
				return s, unix.ELOOP
			}
			target, err := readLink(s.dir[f.in], name)
			if err != nil {
				return s, err
			}
			if rest = append(parts(target), rest...); target[0] == '/' {
				if err := again(); err != nil {
					return s, err
				}
			}
			continue
		}
		if len(rest) == 0 {
			s.name, s.found, s.path = name, f, "/"+strings.Join(append(done, name), "/")
			return s, nil
		}
		if !f.is(unix.S_IFDIR) {
			return s, unix.ENOTDIR
		}
		to, err := down(s.dir, name, &f)
		if err != nil {
			return s, err
		}
		s.close()
		s.dir, done = to, append(done, name)
	}
	// The top, or by a link or a step back what is in done.
	if len(done) > 0 {
		last := done[len(done)-1]
		above := "/" + strings.Join(done[:len(done)-1], "/")
		s.close()
		if s, err = t.walk(ctx, above, false); err != nil {
			return s, err
		}
		if s.name != "" {
			f := s.found
			to, err := down(s.dir, s.name, &f)
			if err != nil {
				return s, err
			}
			s.close()
			s.dir = to
		}
		if s.found, err = look(s.dir, last); err != nil {
			return s, err
		}
		s.name, s.path = last, path.Join(above, last)
		return s, nil
	}
	s.path = "/"
	for s.in = range s.dir {
		if s.dir[s.in] >= 0 {
			return s, unix.Fstat(s.dir[s.in], &s.stat)
		}
	}
	return s, unix.ENOENT
}

func parts(p string) []string {
	var all []string
	for name := range strings.SplitSeq(p, "/") {
		if name != "" && name != "." {
			all = append(all, name)
		}
	}
	return all
}

func readLink(dir int, name string) (string, error) {
	var b [unix.PathMax]byte
	n, err := unix.Readlinkat(dir, name, b[:])
	if err == nil && (n == 0 || n == len(b)) {
		err = unix.ENAMETOOLONG
	}
	return string(b[:max(n, 0)]), err
}

// Stat tells what is at a path; a link at its end is not followed.
func (t *Tree) Stat(ctx context.Context, p string) (sandbox.FileInfo, error) {
	s, err := t.walk(ctx, p, false)
	if err != nil {
		return sandbox.FileInfo{}, failed(ctx, p, err)
	}
	defer s.close()
	fi := t.describe(&s.found, s.dir, s.name)
	fi.Path = s.path
	if fi.Type == sandbox.Symlink {
		if to, err := t.walk(ctx, s.path, true); err == nil {
			fi.TargetType = typeOf(to.stat.Mode)
			to.close()
		}
	}
	return fi, nil
}

// Open opens a regular file, or what a link leads to that is one.
func (t *Tree) Open(ctx context.Context, p string) (sandbox.FileInfo, io.ReadSeekCloser, error) {
	s, err := t.walk(ctx, p, true)
	if err != nil {
		return sandbox.FileInfo{}, nil, failed(ctx, p, err)
	}
	defer s.close()
	switch {
	case s.is(unix.S_IFDIR):
		return sandbox.FileInfo{}, nil, failed(ctx, p, unix.EISDIR)
	case !s.is(unix.S_IFREG):
		return sandbox.FileInfo{}, nil, fault.InvalidField("path", "%q is no regular file; only those have content", shown(p))
	}
	f, err := openRegular(s.dir[s.in], s.name, &s.stat)
	if err != nil {
		return sandbox.FileInfo{}, nil, failed(ctx, p, err)
	}
	fi := t.describe(&s.found, s.dir, s.name)
	fi.Path = s.path
	return fi, f, nil
}

// openRegular opens a name of a directory for its bytes. It is opened by its path first, which does nothing to what it is, and
// that very file then.
func openRegular(dir int, name string, st *unix.Stat_t) (*os.File, error) {
	at, err := openAt(dir, name, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	defer unix.Close(at)
	if err := unix.Fstat(at, st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, unix.EAGAIN // it was another a moment ago
	}
	return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", at), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

// describe makes the record of a file. Path is the caller's.
func (t *Tree) describe(f *found, dir place, name string) sandbox.FileInfo {
	st := &f.stat
	fi := sandbox.FileInfo{
		Name: name, Type: typeOf(st.Mode), Mode: fs.FileMode(st.Mode & 0o777), ModTime: time.Unix(st.Mtim.Unix()).UTC(), UID: int(st.Uid), GID: int(st.Gid),
	}
	if name == "" {
		fi.Name = "/"
	}
	for bit, is := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if st.Mode&bit != 0 {
			fi.Mode |= is
		}
	}
	switch fi.Type {
	case sandbox.RegularFile:
		fi.Size = st.Size
		if t.fixed {
			fi.Version = versionOf(st)
		}
	case sandbox.Symlink:
		fi.Size = st.Size
		fi.Target, _ = readLink(dir[f.in], name)
	}
	return fi
}

// versionOf names the content of a file that does not change any more.
func versionOf(st *unix.Stat_t) string {
	var b []byte
	for _, n := range [...]int64{int64(st.Ino), st.Size, st.Mtim.Nano(), st.Ctim.Nano()} { //nolint:unconvert // another type elsewhere
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

func typeOf(mode uint32) sandbox.FileType {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return sandbox.RegularFile
	case unix.S_IFDIR:
		return sandbox.Directory
	case unix.S_IFLNK:
		return sandbox.Symlink
	}
	return sandbox.OtherFile
}

// shown is a path as messages have it.
func shown(p string) string { return sandbox.Clip(printable.Escape(p), 400) }

// failed says to the caller why a path cannot be looked at.
func failed(ctx context.Context, p string, err error) error {
	if err == nil || ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	at := shown(p)
	switch {
	case errors.Is(err, unix.ENOENT):
		return fault.New(fault.NotFound, "there is no %q on that disk", at).WithRemedy("list its directory to see what is there")
	case errors.Is(err, unix.ENOTDIR):
		return fault.InvalidField("path", "a part of %q is not a directory", at)
	case errors.Is(err, unix.EISDIR):
		return fault.InvalidField("path", "%q is a directory", at)
	case errors.Is(err, unix.ELOOP):
		return fault.InvalidField("path", "%q leads through too many links", at)
	case errors.Is(err, unix.ENAMETOOLONG):
		return fault.InvalidField("path", "%q is too long: a name has at most 255 bytes, a path 4095", at)
	case errors.Is(err, unix.EAGAIN):
		return fault.Wrap(fault.Conflict, err, "%q changes all the time", at).WithRemedy("try again")
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
		return fault.Wrap(fault.Exhausted, err, "the server has no more open files or memory").WithRemedy("try again")
	}
	return fault.Wrap(fault.Unavailable, err, "%q cannot be read", at)
}
