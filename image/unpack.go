// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Bounds of an archive that is unpacked: Node has 127 MB in one file, npm
// 2,500 files.
const (
	maxArchiveFiles = 50_000
	maxArchiveBytes = 1 << 30
)

// unpack writes an archive's regular files below root, where place puts them
// ("" leaves a file out). Links, devices and names that lead out of root are
// refused, whatever a package's author wrote.
func unpack(ctx context.Context, file string, root *os.Root, place func(name string) string) error {
	u := &unpacker{root: root, place: place, bytes: maxArchiveBytes}
	var err error
	if strings.HasSuffix(file, ".whl") {
		err = u.zip(ctx, file)
	} else {
		err = u.tgz(ctx, file)
	}
	if err != nil {
		return fmt.Errorf("unpack %s: %w", path.Base(file), err)
	}
	return nil
}

type unpacker struct {
	root  *os.Root
	place func(name string) string
	files int
	bytes int64 // that may still be written
}

func (u *unpacker) tgz(ctx context.Context, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for tr := tar.NewReader(gz); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		mode := h.FileInfo().Mode()
		if h.Typeflag == tar.TypeLink {
			// A hard link's mode says that it is a regular file.
			mode |= fs.ModeIrregular
		}
		if err := u.entry(h.Name, mode, tr); err != nil {
			return err
		}
	}
}

func (u *unpacker) zip(ctx context.Context, file string) error {
	z, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, e := range z.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := e.Open()
		if err != nil {
			return err
		}
		err = u.entry(e.Name, e.Mode(), r)
		_ = r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) entry(name string, mode fs.FileMode, from io.Reader) error {
	if u.files++; u.files > maxArchiveFiles {
		return fmt.Errorf("more than %d entries", maxArchiveFiles)
	}
	dst := u.place(name)
	if dst == "" || mode.IsDir() {
		return nil
	}
	if !mode.IsRegular() {
		return fmt.Errorf("%s is not a regular file", shown(name))
	}
	if !fs.ValidPath(dst) {
		return fmt.Errorf("%s is not a path inside the image", shown(name))
	}
	if err := u.root.MkdirAll(path.Dir(dst), 0o755); err != nil {
		return err
	}
	if err := u.root.Remove(dst); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := u.root.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644|mode.Perm()&0o111)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(from, u.bytes+1))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if u.bytes -= n; err == nil && u.bytes < 0 {
		err = fmt.Errorf("more than %d bytes", int64(maxArchiveBytes))
	}
	return err
}

// replaceLink makes a symbolic link, also where there is something.
func replaceLink(root *os.Root, target, name string) error {
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	return root.Symlink(target, name)
}
