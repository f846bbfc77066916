// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of what a build may change, beside the limit of its sandbox's disk.
const (
	maxLayerFiles = 2_000_000
	maxLayerBytes = 64 << 30
	maxLayerID    = 65535 // of owners
)

// linkTree makes to a tree with the directories of from and hard links of all else in it. from is an
// image: nobody writes to it.
func linkTree(ctx context.Context, from, to string) error {
	type stamp struct {
		path string
		at   unix.Timespec
	}
	var dirs []stamp
	err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		if !d.IsDir() {
			err := os.Link(name, at)
			if errors.Is(err, unix.EMLINK) && d.Type().IsRegular() {
				return copyFile(name, at)
			}
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil {
			return err
		}
		if err := os.Mkdir(at, 0o700); err != nil {
			return err
		}
		if err := os.Lchown(at, int(st.Uid), int(st.Gid)); err != nil {
			return err
		}
		dirs = append(dirs, stamp{at, st.Mtim})
		return unix.Chmod(at, st.Mode&0o7777)
	})
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, d.path, []unix.Timespec{d.at, d.at}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file that has as many names as a file can have.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(in.Fd()), &st); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = unix.Fchown(int(out.Fd()), int(st.Uid), int(st.Gid))
	}
	if err == nil {
		err = unix.Fchmod(int(out.Fd()), st.Mode&0o7777)
	}
	return errors.Join(err, out.Close())
}

// applyFrom applies the layer that write writes to the tree at root, which is one of base's files. What is at
// the names in left stays as the base has it.
func applyFrom(ctx context.Context, base, root string, left []string, write func(context.Context, io.Writer) error) error {
	writing, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := write(writing, w)
		_ = w.CloseWithError(err)
		wrote <- err
	}()
	err := applyLayer(ctx, root, r)
	if err == nil { // the end of the stream tells whether it is whole
		_, err = io.Copy(io.Discard, r)
	}
	cancel()
	_ = r.CloseWithError(context.Canceled)
	werr := <-wrote
	if err != nil {
		return fmt.Errorf("apply what the build changed: %w", err)
	}
	if werr != nil {
		return werr
	}
	return restore(ctx, base, root, left)
}

// notKept are directories whose content a build leaves behind, and files that are the base's.
var (
	notKept = []string{
		"workspace", "artifacts", "tmp", "var/tmp", "run", "dev", "proc", "sys", "var/log",
		"var/lib/apt/lists", "var/cache/apt", "var/cache/debconf", "root/.cache", "root/.npm", sandboxHome + "/.cache", sandboxHome + "/.npm",
	}
	notChanged = []string{
		"etc/hostname", "etc/hosts", "etc/resolv.conf", "etc/machine-id", "var/lib/dbus/machine-id",
		"etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-", "var/lib/dpkg/status-old", "var/lib/dpkg/available",
	}
)

// restore makes what a build leaves behind as the base has it.
func restore(ctx context.Context, base, to string, names []string) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range names {
		if !beneath(root, path.Dir(name)) {
			continue // a link has taken the place of a directory above: what it leads to is part of the image
		}
		if err := root.RemoveAll(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		err := linkTree(ctx, filepath.Join(base, name), filepath.Join(to, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// left is what a build of the catalogue leaves as the base has it.
func left() []string { return slices.Concat(notKept, notChanged) }

// beneath reports whether a path leads through real directories only.
func beneath(root *os.Root, name string) bool {
	for at := name; at != "."; at = path.Dir(at) {
		if info, err := root.Lstat(at); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// The form of a layer: see package linux/layer, which writes it.
const (
	whiteout      = ".wh."
	opaque        = ".wh..wh..opq"
	literalRecord = "SANDPIT.literal"
	attrRecord    = "SCHILY.xattr."
	attrRecordHex = "SANDPIT.xattr." // see linux/layer
	metaName      = "sandpit.json"
)

// applier applies a layer to a tree. What is in the layer was written by whatever a build ran: each
// entry has to come after its directory, which has to be a real one by then, so that no link is
// followed, and all goes through root.
type applier struct {
	root  *os.Root
	dirs  map[string]bool // directories of the layer
	files map[string]bool // files of it, for hard links
	bytes int64           // that may still be written
	times []dirTime
}

type dirTime struct {
	name string
	at   time.Time
}

// applyLayer reads an archive, compressed or not, in which a snapshot's description may come first.
func applyLayer(ctx context.Context, dir string, from io.Reader) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	in := bufio.NewReader(from)
	var r io.Reader = in
	if magic, err := in.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		defer z.Close()
		r = z
	}
	a := &applier{root: root, dirs: map[string]bool{".": true}, files: make(map[string]bool), bytes: maxLayerBytes}
	t := tar.NewReader(r)
	for n := 0; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return a.finish()
		}
		if err != nil {
			return err
		}
		if n == maxLayerFiles {
			return fmt.Errorf("more than %d entries", maxLayerFiles)
		}
		if n == 0 && h.Name == metaName {
			continue
		}
		if err := a.entry(h, t); err != nil {
			return err
		}
	}
}

// finish sets the times of directories, which what was put into them has changed.
func (a *applier) finish() error {
	for i := len(a.times) - 1; i >= 0; i-- {
		if d := a.times[i]; a.dirs[d.name] {
			if err := a.root.Chtimes(d.name, d.at, d.at); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *applier) entry(h *tar.Header, from io.Reader) error {
	name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
	if name == "" {
		return nil // the root itself stays as the base has it
	}
	if !fs.ValidPath(name) {
		return fmt.Errorf("%s is not a path inside the image", shown(h.Name))
	}
	dir, base := path.Split(name)
	if dir = path.Clean(dir); !a.dirs[dir] {
		return fmt.Errorf("%s comes before its directory", shown(name))
	}
	if base == opaque {
		return a.empty(dir)
	}
	if hidden, ok := strings.CutPrefix(base, whiteout); ok && h.PAXRecords[literalRecord] == "" {
		at := path.Join(dir, hidden)
		if hidden == "" || hidden == "." || hidden == ".." {
			return fmt.Errorf("%s deletes nothing that there can be", shown(name))
		}
		return a.remove(at)
	}
	if h.Uid < 0 || h.Uid > maxLayerID || h.Gid < 0 || h.Gid > maxLayerID {
		return fmt.Errorf("%s belongs to %d:%d, beyond %d", shown(name), h.Uid, h.Gid, maxLayerID)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return a.dir(name, h)
	case tar.TypeReg:
		return a.file(name, h, from)
	case tar.TypeSymlink:
		if err := a.remove(name); err != nil {
			return err
		}
		if err := a.root.Symlink(h.Linkname, name); err != nil {
			return err
		}
		a.files[name] = true
		return a.root.Lchown(name, h.Uid, h.Gid)
	case tar.TypeLink:
		to := strings.TrimPrefix(h.Linkname, "./")
		if !a.files[to] {
			return fmt.Errorf("%s is another name of %s, which the layer does not have", shown(name), shown(to))
		}
		if err := a.remove(name); err != nil {
			return err
		}
		a.files[name] = true
		return a.root.Link(to, name)
	}
	return nil // what is neither is of no use in an image: a queue
}

// remove removes what is there, whatever it is.
func (a *applier) remove(name string) error {
	delete(a.files, name)
	if a.dirs[name] {
		for _, known := range []map[string]bool{a.dirs, a.files} {
			for at := range known {
				if at == name || strings.HasPrefix(at, name+"/") {
					delete(known, at)
				}
			}
		}
	}
	err := a.root.RemoveAll(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// empty removes what the base has in a directory.
func (a *applier) empty(dir string) error {
	all, err := fs.ReadDir(a.root.FS(), dir)
	if err != nil {
		return err
	}
	for _, e := range all {
		if err := a.remove(path.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (a *applier) dir(name string, h *tar.Header) error {
	info, err := a.root.Lstat(name)
	if err == nil && !info.IsDir() {
		if err = a.remove(name); err == nil {
			err = fs.ErrNotExist
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = a.root.Mkdir(name, 0o700)
	}
	if err != nil {
		return err
	}
	a.dirs[name] = true
	a.times = append(a.times, dirTime{name, h.ModTime})
	f, err := a.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return dress(f, h)
}

func (a *applier) file(name string, h *tar.Header, from io.Reader) error {
	if a.bytes -= h.Size; a.bytes < 0 {
		return fmt.Errorf("more than %d bytes", int64(maxLayerBytes))
	}
	if err := a.remove(name); err != nil {
		return err
	}
	f, err := a.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, from); err != nil {
		return err
	}
	if err := dress(f, h); err != nil {
		return err
	}
	a.files[name] = true
	return a.root.Chtimes(name, h.ModTime, h.ModTime)
}

// dress gives an open file or directory its owner, mode and attributes. The owner comes first: a
// change of it takes away the bits by which a program runs as another user.
func dress(f *os.File, h *tar.Header) error {
	fd := int(f.Fd())
	if err := unix.Fchown(fd, h.Uid, h.Gid); err != nil {
		return err
	}
	if err := unix.Fchmod(fd, uint32(h.Mode)&0o7777); err != nil {
		return err
	}
	for record, value := range h.PAXRecords {
		name, ok := strings.CutPrefix(record, attrRecord)
		if coded, isHex := strings.CutPrefix(record, attrRecordHex); isHex {
			b, err := hex.DecodeString(coded)
			if err != nil {
				return fmt.Errorf("an attribute's name %s is not hexadecimal", shown(coded))
			}
			name, value, ok = string(b), strings.TrimPrefix(value, "="), true
		}
		if !ok || !strings.HasPrefix(name, "user.") && name != "system.posix_acl_access" && name != "system.posix_acl_default" {
			continue
		}
		if err := unix.Fsetxattr(fd, name, []byte(value), 0); err != nil && !errors.Is(err, unix.ENOTSUP) {
			return err
		}
	}
	return nil
}

// LinkTree makes to, which is there and empty, a tree of from's directories with hard links of all else in it.
func LinkTree(ctx context.Context, from, to string) error {
	if err := os.Remove(to); err != nil {
		return err
	}
	return linkTree(ctx, from, to)
}
