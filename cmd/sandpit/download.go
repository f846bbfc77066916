// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

const (
	// defaultCopyMiB is the most that one copy out of a sandbox writes here unless told otherwise.
	// A sandbox's disk bounds nothing: a file of holes is as long as its program says.
	defaultCopyMiB = 10 << 10
	// entryCost is what a file or directory counts for beside its content: a block of a disk.
	entryCost = 4 << 10
)

// listedAtOnce is how many entries of a directory are asked for at a time.
const listedAtOnce = 10_000

// download copies a file or directory out of the sandbox.
func (t *transfer) download(ctx context.Context, from, to string) error {
	dir, err := t.isDir(ctx, from)
	if err != nil {
		return err
	}
	if to == "-" {
		if dir {
			return fault.New(fault.Invalid, "%s is a directory, which standard output cannot hold", from).
				WithRemedy("make an archive of it: sandpit exec %s tar c %s", t.ref, from)
		}
		f, err := t.cl.ReadFile(ctx, t.ref, from, client.ReadOptions{User: t.user})
		if err != nil {
			return err
		}
		defer f.Close()
		if f.Size > t.left {
			return t.tooLarge(from, "its "+output.Bytes(f.Size))
		}
		_, err = t.receive(t.a.stdout, f, from)
		return err
	}
	from, inside := contents(from)
	info, err := os.Stat(to)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(fault.Denied, err, "%s cannot be written to", to)
	case err == nil && info.IsDir() || strings.HasSuffix(to, "/"):
		if !(dir && inside) {
			to = filepath.Join(to, path.Base(path.Clean(from)))
		}
	case err == nil && dir:
		return fault.New(fault.Exists, "%s is a file, and %s a directory", to, from)
	}
	if dir {
		if err := t.entry(from, 0); err != nil {
			return err
		}
		err := os.Mkdir(to, 0o755)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fault.Wrap(fault.Denied, err, "the directory %s cannot be made", to)
		}
		var info *v1.FileInfo
		if err == nil { // and before its content is read: that may be long
			if info, err = t.cl.Stat(ctx, t.ref, from+"/.", t.user); err != nil {
				return err
			}
		}
		root, err := os.OpenRoot(to)
		if err != nil {
			return fault.Wrap(fault.Denied, err, "%s cannot be written to", to)
		}
		defer root.Close()
		return t.downloadDir(ctx, from, root, ".", info)
	}
	root, err := os.OpenRoot(filepath.Dir(to))
	if err != nil {
		return fault.Wrap(fault.Denied, err, "%s cannot be written", to)
	}
	defer root.Close()
	return t.get(ctx, from, root, filepath.Base(to), nil)
}

// downloadDir copies what is in a directory inside to the local directory rel of
// root, which gets the permissions and the time that info has, nil: it was here before.
// Names come out of the sandbox: one that is more than a name is refused,
// and root keeps all else where it belongs.
func (t *transfer) downloadDir(ctx context.Context, from string, root *os.Root, rel string, info *v1.FileInfo) error {
	if err := t.downloadEntries(ctx, from, root, rel); err != nil || info == nil {
		return err
	}
	// Its owner may always go on to write to it, and remove it.
	if err := root.Chmod(rel, permissions(info.Mode, 0o755)|0o700); err != nil {
		return err
	}
	return root.Chtimes(rel, time.Time{}, info.ModifiedAt)
}

func (t *transfer) downloadEntries(ctx context.Context, from string, root *os.Root, rel string) error {
	for after := ""; ; {
		files, more, err := t.cl.ListFilesAfter(ctx, t.ref, from, t.user, after, listedAtOnce)
		if err != nil {
			return err
		}
		if err := t.downloadAll(ctx, from, files, root, rel); err != nil || !more {
			return err
		}
		if len(files) == 0 || files[len(files)-1].Name == after {
			return fault.New(fault.Unavailable, "the list of %s does not go on after %q", from, after).
				WithRemedy("make an archive of it: sandpit exec %s tar c %s", t.ref, from)
		}
		after = files[len(files)-1].Name
	}
}

// downloadAll copies some of the entries of a directory.
func (t *transfer) downloadAll(ctx context.Context, from string, files []v1.FileInfo, root *os.Root, rel string) (err error) {
	for _, f := range files {
		if !plainName(f.Name) {
			t.leftOut(path.Join(from, f.Name), "its name is no name of a file")
			continue
		}
		inside, here := path.Join(from, f.Name), filepath.Join(rel, f.Name)
		switch f.Type {
		case "file":
			err = t.get(ctx, inside, root, here, &f)
		case "dir":
			var known *v1.FileInfo
			if err = t.entry(inside, 0); err == nil {
				var made bool
				if made, err = mkdirIn(root, here); made {
					known = &f
				}
			}
			if err == nil {
				err = t.downloadDir(ctx, inside, root, here, known)
			}
		case "symlink":
			if !staysBelow(path.Dir(filepath.ToSlash(here)), f.Target) {
				t.leftOut(inside, "a link to "+f.Target)
				continue
			}
			if err = t.entry(inside, 0); err == nil {
				err = link(root, f.Target, here)
			}
		default:
			t.leftOut(inside, "neither a file nor a directory")
		}
		switch {
		case fault.Is(err, fault.NotFound) && ctx.Err() == nil:
			t.leftOut(inside, "it is gone, or its name is not UTF-8")
		case err != nil:
			return err
		}
	}
	return nil
}

// plainName reports whether a name is that of one file in a directory.
func plainName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// staysBelow reports whether a link in dir, a directory below the top of a copy, leads to
// somewhere below that top, whatever other such links are on its way: it may go up from where
// it is, and only down from there. A name that is not UTF-8 is escaped with backslashes.
func staysBelow(dir, target string) bool {
	if target == "" || path.IsAbs(target) || strings.ContainsAny(target, "\\\x00") {
		return false
	}
	up, depth, down := 0, 0, false
	if dir != "." {
		depth = strings.Count(dir, "/") + 1
	}
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "..":
			if up++; down || up > depth {
				return false
			}
		case part != "" && part != ".":
			down = true
		}
	}
	return true
}

// link makes a link here, in the place of what has its name.
func link(root *os.Root, target, to string) error {
	temporary := filepath.Join(filepath.Dir(to), ".sandpit-"+rand.Text())
	if err := root.Symlink(target, temporary); err != nil {
		return fault.Wrap(fault.Denied, err, "the link %s cannot be made", to)
	}
	if err := root.Rename(temporary, to); err != nil {
		_ = root.Remove(temporary)
		return fault.Wrap(fault.Exists, err, "the link %s cannot be put in place", to)
	}
	return nil
}

func mkdirIn(root *os.Root, name string) (made bool, err error) {
	err = root.Mkdir(name, 0o755)
	if !errors.Is(err, fs.ErrExist) {
		return err == nil, err
	}
	info, err := root.Lstat(name)
	if err == nil && !info.IsDir() {
		return false, fault.New(fault.Exists, "%s is there already, and is no directory", name)
	}
	return false, err
}

// get writes one file of the sandbox's: the whole, or nothing. What has its name
// is replaced, and not followed if it is a link.
func (t *transfer) get(ctx context.Context, from string, root *os.Root, to string, info *v1.FileInfo) (err error) {
	if info == nil {
		if info, err = t.cl.Stat(ctx, t.ref, from, t.user); err != nil {
			return err
		}
	}
	f, err := t.cl.ReadFile(ctx, t.ref, from, client.ReadOptions{User: t.user})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := t.entry(from, f.Size); err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(to), ".sandpit-"+rand.Text())
	w, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fault.Wrap(fault.Denied, err, "%s cannot be written", to)
	}
	defer func() {
		if err != nil {
			_ = w.Close()
			_ = root.Remove(temporary)
		}
	}()
	n, err := t.receive(w, &counted{r: f, t: t, name: filepath.Base(to), size: f.Size}, from)
	if fault.Is(err, fault.TooLarge) {
		return err
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s broke off after %d bytes", from, n)
	}
	if f.Size >= 0 && n != f.Size {
		return fault.New(fault.Unavailable, "%s broke off after %d of %d bytes", from, n, f.Size)
	}
	perm, changed := permissions(info.Mode, 0o644), info.ModifiedAt
	if info.Type != "file" { // a link, which has none of its own
		perm, changed = 0o644, f.ModifiedAt
	}
	if err := w.Chmod(perm); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return fault.Wrap(fault.Exhausted, err, "%s cannot be written", to)
	}
	if err := root.Chtimes(temporary, time.Time{}, changed); err != nil {
		return fault.Wrap(fault.Denied, err, "%s cannot get the time of its last change", to)
	}
	if err := root.Rename(temporary, to); err != nil {
		return fault.Wrap(fault.Exists, err, "%s cannot be put in place", to)
	}
	return nil
}

// entry counts a file or directory that is about to be made here. Its content, of size bytes
// unless that is below zero, is not written yet.
func (t *transfer) entry(from string, size int64) error {
	t.left -= entryCost
	switch {
	case t.left < 0:
		return t.tooLarge(from, "one entry more")
	case size > t.left:
		return t.tooLarge(from, "its "+output.Bytes(size))
	}
	return nil
}

// receive copies content out of the sandbox, as much as may still come.
func (t *transfer) receive(w io.Writer, r io.Reader, from string) (int64, error) {
	n, err := io.Copy(w, io.LimitReader(r, t.left+1)) // its size may not have been told
	if t.left -= n; t.left < 0 && err == nil {
		err = t.tooLarge(from, "what it still sends")
	}
	return n, err
}

// tooLarge is the error for what would take more of this machine's disk than was allowed.
func (t *transfer) tooLarge(from, with string) error {
	return fault.New(fault.TooLarge, "%s: with %s the copy would write more than %s to this machine", from, with, output.Bytes(t.most)).
		WithRemedy("if you want all of it, allow more: --max-size SIZE; du -sh --apparent-size in the sandbox says how much it is")
}

// permissions reads those of a file's mode, and no set-user-id bits.
func permissions(mode string, otherwise fs.FileMode) fs.FileMode {
	bits, err := strconv.ParseUint(mode, 8, 32)
	if err != nil {
		return otherwise
	}
	return fs.FileMode(bits) & fs.ModePerm
}
