// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"context"
	"encoding/binary"
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
)

// The marks of files that a layer removes from those below it.
const (
	whiteout     = ".wh."
	whiteoutMeta = ".wh..wh." // of a storage driver's own
	opaqueMark   = ".wh..wh..opq"
)

// maxID is the highest user or group that a sandbox has.
const maxID = 65535

// nobody owns what belongs to a user that a sandbox does not have.
const nobody = 65534

// maxHeld bounds the names of directories, and of what a layer removes, in bytes: they are held in memory.
const maxHeld = 64 << 20

// unpacker makes a layer's files below root, which it alone writes to.
type unpacker struct {
	root  *os.Root
	own   bool // gives files to their owners; else all are the caller's
	left  *budget
	layer *layer

	known map[string]bool // directories that are there; true: an entry of their own says what they are
	times map[string]time.Time
	held  int // bytes of names

	at  string // of dir; "": none
	dir *os.File
}

// unpack makes the files of a tar archive.
func unpack(ctx context.Context, r io.Reader, root *os.Root, own bool, left *budget) (_ *layer, err error) {
	u := &unpacker{root: root, own: own, left: left, layer: new(layer), known: map[string]bool{".": false}, times: make(map[string]time.Time)}
	defer u.leave()
	for tr := tar.NewReader(r); ; {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, archiveError(err)
		}
		if err := u.entry(h, tr); err != nil {
			return nil, err
		}
	}
	for name, t := range u.times {
		f, err := openDir(u.root, name)
		if err != nil {
			return nil, err
		}
		err = setTime(int(f.Fd()), "", t)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
	}
	for name, said := range u.known {
		if !said {
			u.layer.Implied = append(u.layer.Implied, name)
		}
	}
	return u.layer, nil
}

// archiveError tells what cannot be read from what broke off.
func archiveError(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, tar.ErrFieldTooLong) || errors.Is(err, tar.ErrInsecurePath) || errors.Is(err, io.ErrUnexpectedEOF) {
		return refused("a layer is no whole tar archive: %v", err)
	}
	return err
}

func (u *unpacker) entry(h *tar.Header, r io.Reader) error {
	switch h.Typeflag {
	case tar.TypeXGlobalHeader:
		return nil
	}
	if err := u.left.entry(); err != nil {
		return err
	}
	name, err := cleanName(h.Name)
	if err != nil {
		return err
	}
	parent, base := path.Split(name)
	parent = path.Clean(parent)
	if strings.HasPrefix(base, whiteoutMeta) || strings.Contains("/"+parent, "/"+whiteoutMeta) {
		if base == opaqueMark {
			return u.remove(h, parent, &u.layer.Opaque)
		}
		return nil
	}
	if strings.Contains("/"+parent, "/"+whiteout) {
		return refused("the name %s in a layer is below a mark of a removed file", shown(h.Name))
	}
	if gone, ok := strings.CutPrefix(base, whiteout); ok {
		if gone == "" || gone == "." || gone == ".." {
			return refused("the name %s in a layer marks no file as removed", shown(h.Name))
		}
		return u.remove(h, path.Join(parent, gone), &u.layer.Removed)
	}
	if name == "." {
		if h.Typeflag != tar.TypeDir {
			return refused("a layer makes of its root something else than a directory")
		}
		u.known["."] = true
		u.times["."] = h.ModTime
		return u.dress(h, ".")
	}
	if parent, err = u.parents(parent); err != nil {
		return err
	}
	name = path.Join(parent, base)
	return u.make(h, r, parent, base, name)
}

// remove notes what the layer takes from those below it.
func (u *unpacker) remove(h *tar.Header, name string, list *[]string) error {
	if h.Typeflag != tar.TypeReg {
		return refused("the mark %s of a removed file is not a file", shown(h.Name))
	}
	if err := u.hold(name); err != nil {
		return err
	}
	*list = append(*list, name)
	return nil
}

// hold counts a name that is held in memory.
func (u *unpacker) hold(name string) error {
	if u.held += len(name); u.held > maxHeld {
		return refused("the names of a layer's directories, and of what it removes, have more than %d bytes", maxHeld)
	}
	return nil
}

// parents returns where dir is, and makes what is missing of it.
func (u *unpacker) parents(dir string) (string, error) {
	if _, ok := u.known[dir]; ok {
		return dir, nil
	}
	at, err := resolve(u.root, dir, func(at string) error {
		if err := u.left.entry(); err != nil {
			return err
		}
		if err := u.hold(at); err != nil {
			return err
		}
		u.known[at] = false
		return u.root.Mkdir(at, 0o755)
	})
	if fault.Is(err, fault.Invalid) {
		return "", err
	}
	if err != nil {
		return "", refused("the directory %s in a layer cannot be made: %v", shown(dir), cause(err))
	}
	return at, nil
}

// cause is an error without the path that it names, which is of this machine.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err
	}
	return err
}

// make makes one entry, in place of what an entry before it made there.
func (u *unpacker) make(h *tar.Header, r io.Reader, parent, base, name string) error {
	switch h.Typeflag {
	case tar.TypeChar, tar.TypeBlock:
		u.layer.Devices++
		return nil
	case tar.TypeDir:
		if _, ok := u.known[name]; ok {
			u.known[name] = true
			u.times[name] = h.ModTime
			return u.dress(h, name)
		}
	}
	if err := u.clear(name); err != nil {
		return err
	}
	if err := u.enter(parent); err != nil {
		return err
	}
	fd := int(u.dir.Fd())
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		return u.file(h, r, fd, base)
	case tar.TypeDir:
		if err := u.hold(name); err != nil {
			return err
		}
		if err := unix.Mkdirat(fd, base, 0o700); err != nil {
			return made("a directory", name, err)
		}
		u.known[name] = true
		u.times[name] = h.ModTime
		return u.dress(h, name)
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) >= maxNameBytes || strings.ContainsRune(h.Linkname, 0) {
			return refused("the symbolic link %s in a layer has a target of %d bytes, or one with a zero byte", shown(h.Name), len(h.Linkname))
		}
		if err := unix.Symlinkat(h.Linkname, fd, base); err != nil {
			return made("a symbolic link", name, err)
		}
	case tar.TypeLink:
		return u.link(h, name)
	case tar.TypeFifo:
		if err := unix.Mknodat(fd, base, unix.S_IFIFO|0o600, 0); err != nil {
			return made("a named pipe", name, err)
		}
	default:
		return refused("the entry %s in a layer is of the unknown kind %q", shown(h.Name), h.Typeflag)
	}
	if err := u.chown(h, fd, base); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeFifo {
		if err := unix.Fchmodat(fd, base, mode(h), 0); err != nil {
			return made("a named pipe", name, err)
		}
	}
	return setTime(fd, base, h.ModTime)
}

func made(what, name string, err error) error {
	return fmt.Errorf("make %s %s of a layer: %w", what, shown(name), err)
}

// clear removes what is at name.
func (u *unpacker) clear(name string) error {
	info, err := u.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		u.leave()
		for at := range u.known {
			if at == name || strings.HasPrefix(at, name+"/") {
				delete(u.known, at)
				delete(u.times, at)
			}
		}
	}
	return u.root.RemoveAll(name)
}

func (u *unpacker) file(h *tar.Header, r io.Reader, fd int, base string) error {
	if err := u.left.room(h.Size); err != nil {
		return err
	}
	at, err := unix.Openat(fd, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return made("a file", base, err)
	}
	f := os.NewFile(uintptr(at), base)
	n, err := io.Copy(f, u.left.reader(r))
	if err == nil && n != h.Size {
		err = refused("the file %s in a layer has %d bytes, and is said to have %d", shown(h.Name), n, h.Size)
	}
	// In this order: a new owner takes the set-user-id bits and the capabilities away.
	if err == nil {
		err = u.chown(h, at, "")
	}
	if err == nil {
		err = unix.Fchmod(at, mode(h))
	}
	if err == nil {
		err = attributes(h, at)
	}
	if err == nil {
		err = setTime(at, "", h.ModTime)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// link makes one more name of a file that the layer made before.
func (u *unpacker) link(h *tar.Header, name string) error {
	to, err := cleanName(h.Linkname)
	if err != nil {
		return err
	}
	dir, base := path.Split(to)
	at, err := resolve(u.root, path.Clean(dir), func(string) error { return fs.ErrNotExist })
	if err == nil {
		to = path.Join(at, base)
		var info fs.FileInfo
		if info, err = u.root.Lstat(to); err == nil && info.IsDir() {
			err = errors.New("is a directory")
		}
	}
	if err == nil {
		err = u.root.Link(to, name)
	}
	if err != nil {
		return refused("the hard link %s in a layer leads to %s, of which no link can be made: %v", shown(h.Name), shown(h.Linkname), cause(err))
	}
	return nil
}

// dress gives a directory its owner, mode and attributes.
func (u *unpacker) dress(h *tar.Header, name string) error {
	f, err := openDir(u.root, name)
	if err != nil {
		return err
	}
	defer f.Close()
	fd := int(f.Fd())
	if err := u.chown(h, fd, ""); err != nil {
		return err
	}
	// The server goes on making files there, whoever it is.
	if err := unix.Fchmod(fd, mode(h)|u.passage()); err != nil {
		return err
	}
	return attributes(h, fd)
}

// passage are the bits of directories without which an owner other than root could not fill them.
func (u *unpacker) passage() uint32 {
	if u.own {
		return 0
	}
	return 0o700
}

// chown gives what is at name below fd, or fd itself, to its owner.
func (u *unpacker) chown(h *tar.Header, fd int, name string) error {
	if !u.own {
		return nil
	}
	uid, gid := h.Uid, h.Gid
	if uid < 0 || uid > maxID {
		uid = nobody
		u.layer.Foreign++
	}
	if gid < 0 || gid > maxID {
		gid = nobody
	}
	return unix.Fchownat(fd, name, uid, gid, unix.AT_SYMLINK_NOFOLLOW|empty(name))
}

func empty(name string) int {
	if name == "" {
		return unix.AT_EMPTY_PATH
	}
	return 0
}

func mode(h *tar.Header) uint32 { return uint32(h.Mode) & 0o7777 }

// setTime sets when name below fd, or fd itself, was changed.
func setTime(fd int, name string, t time.Time) error {
	ts, err := unix.TimeToTimespec(t)
	if err != nil {
		return nil // beyond what the kernel has numbers for: it keeps the time of unpacking
	}
	if name == "" {
		name = fmt.Sprintf("/proc/self/fd/%d", fd)
		return unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{ts, ts}, 0)
	}
	return unix.UtimesNanoAt(fd, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}

// enter opens the directory in which the next entries are made.
func (u *unpacker) enter(dir string) error {
	if u.dir != nil && u.at == dir {
		return nil
	}
	u.leave()
	f, err := openDir(u.root, dir)
	if err != nil {
		return err
	}
	u.dir, u.at = f, dir
	return nil
}

func (u *unpacker) leave() {
	if u.dir != nil {
		_ = u.dir.Close()
		u.dir, u.at = nil, ""
	}
}

// openDir opens a directory below root whose path has no links.
func openDir(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// Names of extended attributes, in a tar archive and on disk.
const (
	xattrRecord  = "SCHILY.xattr."
	capability   = "security.capability"
	userXattr    = "user."
	overlayXattr = "user.overlay." // the file system's own, where it may not use trusted.*
)

// Bounds of a file's extended attributes.
const (
	maxXattrs     = 64
	maxXattrBytes = 64 << 10
)

// attributes sets the extended attributes of a file or directory.
func attributes(h *tar.Header, fd int) error {
	count, total := 0, 0
	for record, value := range h.PAXRecords {
		name, ok := strings.CutPrefix(record, xattrRecord)
		if !ok {
			continue
		}
		data := []byte(value)
		switch {
		case name == capability && h.Typeflag != tar.TypeDir:
			if data = capabilities(data); data == nil {
				return refused("the capabilities of the file %s in a layer cannot be read", shown(h.Name))
			}
		case strings.HasPrefix(name, userXattr) && !strings.HasPrefix(name, overlayXattr) && len(name) <= maxPartBytes:
		default:
			continue
		}
		count++
		if total += len(name) + len(data); count > maxXattrs || total > maxXattrBytes {
			return refused("the file %s in a layer has more than %d extended attributes, or more than %d bytes of them", shown(h.Name), maxXattrs, maxXattrBytes)
		}
		if err := unix.Fsetxattr(fd, name, data, 0); err != nil && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("set the attribute %s of a layer's file: %w", shown(name), err)
		}
	}
	return nil
}

// Forms of a file's capabilities, see capabilities(7).
const (
	capRevision  = 0xff000000
	capRevision2 = 0x02000000
	capRevision3 = 0x03000000
	capBytes2    = 20
	capBytes3    = 24
)

// capabilities returns a file's capabilities in the form that holds in whichever user namespace the
// file is seen, without the owner of one that revision 3 names; nil: it is none.
func capabilities(data []byte) []byte {
	if len(data) != capBytes2 && len(data) != capBytes3 {
		return nil
	}
	magic := binary.LittleEndian.Uint32(data)
	switch {
	case magic&capRevision == capRevision2 && len(data) == capBytes2:
	case magic&capRevision == capRevision3 && len(data) == capBytes3:
		magic = magic&^uint32(capRevision) | capRevision2
	default:
		return nil
	}
	out := append([]byte(nil), data[:capBytes2]...)
	binary.LittleEndian.PutUint32(out, magic)
	return out
}
