// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// In the archive the sandbox's user has the number that images give it; on this
// host's disk it is who the tests run as.
const userID = 1000

const (
	whiteout    = ".wh."
	opaque      = ".wh..wh..opq"
	xattrRecord = "SCHILY.xattr."
)

// Export writes what differs from the image.
func (d *Driver) Export(ctx context.Context, id sandbox.ID, w io.Writer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.host.snapshots.RLock()
	defer d.host.snapshots.RUnlock()
	all, err := d.host.snapshot(id)
	if err != nil {
		return err
	}
	base := map[string]entry{}
	for _, e := range image() {
		base[e.name] = e
	}
	out := tar.NewWriter(w)
	first := map[inode]string{}
	here := map[string]bool{".": true}
	for i := range all {
		e := &all[i]
		here[e.name] = e.kind() == unix.S_IFDIR
		if was, ok := base[e.name]; ok {
			if alike, err := same(&was, e); alike || err != nil {
				continue
			}
		}
		if err := e.archive(out, first); err != nil {
			return err
		}
	}
	for _, e := range image() {
		if _, ok := here[e.name]; ok || !here[path.Dir(e.name)] {
			continue // a directory that is a file now, or gone, needs no more words
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(path.Dir(e.name), whiteout+path.Base(e.name)), Format: tar.FormatPAX}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
	}
	return out.Close()
}

// ExportDisk is Export: a disk here has no form of its own.
func (d *Driver) ExportDisk(ctx context.Context, id sandbox.ID, w io.Writer) error {
	return d.Export(ctx, id, w)
}

// ImportDisk is Import.
func (d *Driver) ImportDisk(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64) (runtime.Snapshot, error) {
	return d.Import(ctx, id, r, maxBytes)
}

// archive writes the one file; a socket has no form in an archive.
func (e *entry) archive(out *tar.Writer, first map[inode]string) error {
	h := &tar.Header{
		Name: e.name, Mode: int64(e.stat.Mode & 0o7777), Uid: outer(e.stat.Uid, os.Getuid()), Gid: outer(e.stat.Gid, os.Getgid()),
		ModTime: time.Unix(e.stat.Mtim.Unix()), Format: tar.FormatPAX, PAXRecords: map[string]string{},
	}
	for name, value := range e.xattrs {
		h.PAXRecords[xattrRecord+name] = value
	}
	switch e.kind() {
	case unix.S_IFDIR:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	case unix.S_IFLNK:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
	case unix.S_IFIFO:
		h.Typeflag = tar.TypeFifo
	case unix.S_IFREG:
		h.Typeflag, h.Size = tar.TypeReg, e.stat.Size
	default:
		return nil
	}
	if had, ok := first[e.inode()]; ok && e.kind() != unix.S_IFDIR {
		return out.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: e.name, Linkname: had, Format: tar.FormatPAX})
	}
	first[e.inode()] = e.name
	if err := out.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	f, err := os.Open(e.host)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(out, f)
	return err
}

// outer is the archive's number of an owner, and inner the host's.
func outer(id uint32, own int) int {
	if int(id) == own {
		return userID
	}
	return int(id)
}

func inner(id, own int) int {
	if id == userID {
		return own
	}
	return id
}

// Import lays the archive over the image.
func (d *Driver) Import(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64) (runtime.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return runtime.Snapshot{}, err
	}
	return d.host.keep(id, func(dir string) ([]entry, error) {
		if err := copyTree(image(), dir); err != nil {
			return nil, err
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }()
		u := unpacking{root: root, dir: dir, left: maxBytes, made: map[string]bool{}}
		if err := u.all(tar.NewReader(r)); err != nil {
			return nil, err
		}
		return scan(dir, nil)
	})
}

// unpacking is an archive on its way to the disk. Nothing in it is trusted.
type unpacking struct {
	root *os.Root
	dir  string // the same
	left int64  // bytes that may still be written
	made map[string]bool
	dirs []*tar.Header // dressed when all is in them
}

func (u *unpacking) all(in *tar.Reader) error {
	for {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return notArchive("it cannot be read: %s", err)
		}
		if err := u.one(h, in); err != nil {
			return err
		}
	}
	for _, h := range slices.Backward(u.dirs) {
		if !u.real(h.Name) {
			continue // a later entry took its place
		}
		if err := u.dress(h.Name, h); err != nil {
			return err
		}
	}
	return nil
}

func notArchive(format string, args ...any) error {
	return fault.New(fault.Invalid, "the archive is no snapshot's: "+format, args...)
}

// headerCost is what an entry counts at least.
const headerCost = 512

func (u *unpacking) one(h *tar.Header, in io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
	if name == "" || name == "." {
		return nil // the root itself
	}
	if !inside(name) {
		return notArchive("%q is not a valid path", sandbox.Clip(h.Name, 80))
	}
	if u.left -= headerCost + h.Size; h.Size < 0 || u.left < 0 {
		return fault.New(fault.TooLarge, "the archive holds more than the snapshot may")
	}
	dir, base := path.Dir(name), path.Base(name)
	if err := u.parents(dir); err != nil {
		return err
	}
	switch {
	case base == opaque:
		return u.empty(dir)
	case strings.HasPrefix(base, whiteout):
		gone := strings.TrimPrefix(base, whiteout)
		if !inside(gone) {
			return notArchive("%q is not a whiteout", sandbox.Clip(h.Name, 80))
		}
		if gone = path.Join(dir, gone); u.made[gone] {
			return nil
		}
		return u.root.RemoveAll(gone)
	}
	return u.make(name, h, in)
}

// inside reports whether a name is a clean path below the root. Names need not be text.
func inside(name string) bool {
	return name != "" && name != "." && path.Clean("/"+name) == "/"+name && !strings.ContainsRune(name, 0)
}

// parents makes the directories above, and refuses a link among them.
func (u *unpacking) parents(dir string) error {
	if dir == "." {
		return nil
	}
	err := makeDirs(u.dir, dir)
	if at, ok := errors.AsType[blocked](err); ok {
		return notArchive("%q is not a directory", sandbox.Clip(string(at), 80))
	}
	return err
}

// empty deletes what the image has in a directory.
func (u *unpacking) empty(dir string) error {
	list, err := fs.ReadDir(u.root.FS(), dir)
	for _, e := range list {
		if at := path.Join(dir, e.Name()); !u.made[at] && err == nil {
			err = u.root.RemoveAll(at)
		}
	}
	return err
}

func (u *unpacking) make(name string, h *tar.Header, in io.Reader) error {
	info, err := u.root.Lstat(name)
	if err == nil && !(info.IsDir() && h.Typeflag == tar.TypeDir) {
		if err := u.root.RemoveAll(name); err != nil {
			return err
		}
	}
	for at := name; at != "."; at = path.Dir(at) {
		u.made[at] = true
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if info == nil || !info.IsDir() {
			if err := u.root.Mkdir(name, 0o700); err != nil {
				return err
			}
		}
		u.dirs = append(u.dirs, h)
		h.Name = name
		return nil
	case tar.TypeReg:
		f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, in)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = notArchive("it ends too early")
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	case tar.TypeLink:
		to := strings.TrimPrefix(h.Linkname, "./")
		if !inside(to) || !u.plain(to) {
			return notArchive("%q links to %q, which is no file in it", sandbox.Clip(name, 80), sandbox.Clip(h.Linkname, 80))
		}
		return u.root.Link(to, name)
	case tar.TypeSymlink:
		if err := u.root.Symlink(h.Linkname, name); err != nil {
			return notArchive("%q: %s", sandbox.Clip(name, 80), err)
		}
	case tar.TypeFifo:
		if err := unix.Mkfifo(filepath.Join(u.dir, name), 0o600); err != nil { // no link is on the way
			return err
		}
	default:
		return notArchive("%q is of the kind %q", sandbox.Clip(name, 80), h.Typeflag)
	}
	return u.dress(name, h)
}

// plain reports whether a file that is no directory is there, and no link is on the
// way to it.
func (u *unpacking) plain(name string) bool {
	info, err := u.root.Lstat(name)
	return err == nil && !info.IsDir() && u.real(path.Dir(name))
}

// real reports whether a directory is there, and no link is on the way to it.
func (u *unpacking) real(dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if info, err := u.root.Lstat(dir); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// dress returns a file the attributes that the archive says. No link is on the way.
func (u *unpacking) dress(name string, h *tar.Header) error {
	e := entry{name: name, xattrs: map[string]string{}}
	e.stat.Mode = uint32(h.Mode) & 0o7777
	if h.Typeflag == tar.TypeSymlink {
		e.stat.Mode = unix.S_IFLNK
	}
	e.stat.Uid, e.stat.Gid = uint32(inner(h.Uid, os.Getuid())), uint32(inner(h.Gid, os.Getgid()))
	e.stat.Mtim = unix.NsecToTimespec(h.ModTime.UnixNano())
	e.stat.Atim = e.stat.Mtim
	for key, value := range h.PAXRecords {
		attr, ok := strings.CutPrefix(key, xattrRecord)
		if ok && !strings.HasPrefix(attr, "user.") {
			return notArchive("%q has the attribute %q", sandbox.Clip(name, 80), sandbox.Clip(attr, 80))
		}
		if ok {
			e.xattrs[attr] = value
		}
	}
	return e.dress(filepath.Join(u.dir, name))
}
