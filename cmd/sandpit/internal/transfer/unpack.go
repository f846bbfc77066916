// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"sandpit.dev/fault"
)

// Unpack makes what an archive out of a sandbox holds: the file or directory that it begins with gets the
// path to, which may be a directory already. Nothing that the archive says is followed: each entry is made
// in a directory that the archive named before and that is open here, and what has no place in one, is no
// file, directory or link that stays below the top, is left out. A file is there whole or not at all.
func (c *Copy) Unpack(ctx context.Context, r io.Reader, to string) error {
	u := &unpacker{Copy: c, to: filepath.Clean(to), buf: make([]byte, copyBuffer)}
	defer u.leaveAll()
	br := bufio.NewReaderSize(r, streamBuffer)
	tr := tar.NewReader(br)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := tr.Next()
		switch {
		case err == io.EOF && !u.begun:
			return fault.New(fault.Unavailable, "the archive is empty")
		case err == io.EOF:
			return rest(br)
		case err != nil:
			return c.brokeOff(err)
		}
		if err := u.entry(tr, h); err != nil {
			return err
		}
	}
}

type unpacker struct {
	*Copy
	to    string
	begun bool
	in    []openDir // the directories that the archive is in, beginning with the top
	buf   []byte
}

// openDir is a directory of the copy. One that was made gets its mode and time when all in it is there.
type openDir struct {
	rel  string // below the top, which is ""
	root *os.Root
	made bool
	mode fs.FileMode
	time time.Time
}

// entry makes an entry. Each counts, so that no archive goes on for ever.
func (u *unpacker) entry(tr *tar.Reader, h *tar.Header) error {
	if err := u.spend(h.Name, h.Size); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	rel, why := below(h.Name)
	switch {
	case why != "":
	case !u.begun:
		return u.begin(tr, rel, h)
	case rel == "":
		if h.Typeflag != tar.TypeDir || len(u.in) == 0 {
			why = "there is one such already"
		}
	default:
		u.leave(rel)
		if len(u.in) == 0 || u.in[len(u.in)-1].rel != parentOf(rel) {
			why = "its directory is not in the archive"
			break
		}
		err := u.make(tr, rel, h)
		if err == nil {
			return nil
		}
		if _, told := errors.AsType[*fault.Error](err); told || endsAll(err) {
			return err
		}
		why = reason(err)
	}
	if why != "" {
		u.Left(h.Name, why)
	}
	return nil
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

func parentOf(rel string) string {
	if dir := path.Dir(rel); dir != "." {
		return dir
	}
	return ""
}

// begin makes the first entry, which is the copy's top.
func (u *unpacker) begin(tr *tar.Reader, rel string, h *tar.Header) error {
	u.begun = true
	if rel != "" || h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeReg {
		return fault.New(fault.Unavailable, "the archive begins with %q, which is no file or directory that was asked for", h.Name)
	}
	if h.Typeflag == tar.TypeDir {
		return u.beginTree(h)
	}
	root, err := os.OpenRoot(filepath.Dir(u.to))
	if err != nil {
		return fault.Wrap(fault.Denied, err, "%s cannot be written", u.to)
	}
	defer root.Close()
	err = u.file(root, filepath.Base(u.to), tr, h)
	if _, told := errors.AsType[*fault.Error](err); err == nil || told {
		return err
	}
	return fault.Wrap(fault.Denied, err, "%s cannot be written", u.to)
}

func (u *unpacker) beginTree(h *tar.Header) error {
	top := openDir{mode: modeOf(h), time: h.ModTime}
	err := os.Mkdir(u.to, 0o700)
	if top.made = err == nil; errors.Is(err, fs.ErrExist) {
		info, serr := os.Stat(u.to) // a link that the user named may lead to it
		if serr == nil && !info.IsDir() {
			return fault.New(fault.Exists, "%s is a file, and %s a directory", u.to, h.Name)
		}
		err = serr
	}
	if err == nil {
		top.root, err = os.OpenRoot(u.to)
	}
	if err != nil {
		return fault.Wrap(fault.Denied, err, "the directory %s cannot be made or written to", u.to)
	}
	u.in = append(u.in, top)
	return nil
}

// make makes an entry in the directory that the archive is in.
func (u *unpacker) make(tr *tar.Reader, rel string, h *tar.Header) error {
	in, name := u.in[len(u.in)-1].root, path.Base(rel)
	switch h.Typeflag {
	case tar.TypeDir:
		return u.dir(in, rel, h)
	case tar.TypeReg, tar.TypeGNUSparse:
		return u.file(in, name, tr, h)
	case tar.TypeSymlink:
		if !staysBelow(len(u.in)-1, h.Linkname) {
			return errors.New("a link to " + h.Linkname)
		}
		return u.place(in, name, func(as string) error { return in.Symlink(h.Linkname, as) })
	case tar.TypeLink:
		return u.link(in, rel, h)
	}
	return errors.New("neither a file nor a directory")
}

// dir makes a directory, or goes into one that is there. A link to a directory counts as none.
func (u *unpacker) dir(in *os.Root, rel string, h *tar.Header) error {
	if len(u.in) >= maxDepth {
		return errors.New("it is too deep in the tree")
	}
	d, name := openDir{rel: rel, mode: modeOf(h), time: h.ModTime}, path.Base(rel)
	err := in.Mkdir(name, 0o700)
	if d.made = err == nil; errors.Is(err, fs.ErrExist) {
		var info fs.FileInfo
		if info, err = in.Lstat(name); err == nil && !info.IsDir() {
			return fault.New(fault.Exists, "%s is there already, and is no directory", filepath.Join(u.to, rel))
		}
	}
	if err == nil {
		d.root, err = in.OpenRoot(name)
	}
	if err != nil {
		return err
	}
	u.in = append(u.in, d)
	return nil
}

// leave finishes the directories that a path is not in.
func (u *unpacker) leave(rel string) {
	for len(u.in) > 1 {
		d := u.in[len(u.in)-1]
		if len(rel) > len(d.rel) && rel[:len(d.rel)] == d.rel && rel[len(d.rel)] == '/' {
			return
		}
		u.finish()
	}
}

func (u *unpacker) leaveAll() {
	for len(u.in) > 0 {
		u.finish()
	}
}

// finish sets the mode and time of the last directory, and closes it.
func (u *unpacker) finish() {
	d := u.in[len(u.in)-1]
	u.in = u.in[:len(u.in)-1]
	defer d.root.Close()
	if !d.made {
		return
	}
	err := d.root.Chmod(".", d.mode|0o700) // its owner may always go on to write to it, and remove it
	if err == nil {
		err = d.root.Chtimes(".", time.Time{}, d.time)
	}
	if err != nil {
		u.Left(filepath.Join(u.to, d.rel), "its mode and time: "+reason(err))
	}
}

// modeOf is the permissions of an entry, and no set-user-id bits.
func modeOf(h *tar.Header) fs.FileMode { return fs.FileMode(h.Mode) & fs.ModePerm }

// temporary is a name that nobody can have foreseen.
func temporary() string { return ".sandpit-" + rand.Text() }

// place makes something in the place of what has its name, which is not followed.
func (u *unpacker) place(in *os.Root, name string, do func(as string) error) error {
	err := do(name)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	tmp := temporary()
	if err := do(tmp); err != nil {
		return err
	}
	err = in.Rename(tmp, name)
	_ = in.Remove(tmp) // a rename leaves two names of one file
	return err
}

// link adds a name to a file of the copy.
func (u *unpacker) link(in *os.Root, rel string, h *tar.Header) error {
	of, why := below(h.Linkname)
	top := u.in[0].root
	if why == "" {
		if info, err := top.Lstat(of); err != nil || !info.Mode().IsRegular() {
			why = "no file"
		}
	}
	if why != "" {
		return errors.New("another name of " + h.Linkname + ": " + why)
	}
	err := top.Link(of, rel)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	return u.place(in, path.Base(rel), func(as string) error { return top.Link(of, path.Join(path.Dir(rel), as)) })
}

// file writes one file: apart, and then in the place of what has its name.
func (u *unpacker) file(in *os.Root, name string, tr *tar.Reader, h *tar.Header) (err error) {
	tmp := temporary()
	w, err := in.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = w.Close()
			_ = in.Remove(tmp)
		}
	}()
	r := &counted{r: tr, c: u.Copy, name: name, size: h.Size}
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, r, u.buf)
	if r.err != nil {
		return fault.Wrap(fault.Unavailable, r.err, "%s broke off after %d of %d bytes", h.Name, r.done, h.Size)
	}
	if err == nil {
		if err := w.Chmod(modeOf(h)); err != nil {
			return err
		}
		err = w.Close()
	}
	if err != nil {
		return fault.Wrap(fault.Exhausted, err, "%s cannot be written", h.Name)
	}
	if err := in.Chtimes(tmp, time.Time{}, h.ModTime); err != nil {
		u.Left(h.Name, "its time: "+reason(err))
	}
	return in.Rename(tmp, name)
}
