// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package dockerbuild builds a directory's Dockerfile by a server, and shows how that goes.
package dockerbuild

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/image/dockerfile/ignore"
)

// Directory is what a build is sent of.
type Directory struct {
	Path       string
	Dockerfile string // its name below Path, with slashes; or that of Outside
	Outside    []byte // the text of a Dockerfile that is not below Path
}

// stdin is the name of the standard input in place of a file's.
const stdin = "-"

// maxDockerfile bounds one that is read here.
const maxDockerfile = 1 << 20

// Open returns the directory dir with a Dockerfile: file, a path of this machine's or "-" for in, or, where it is empty, the
// directory's own.
func Open(dir, file string, in io.Reader) (*Directory, error) {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return nil, fault.Wrap(fault.Invalid, err, "%s is not a directory", dir).WithRemedy("name the directory that COPY and ADD take from, most often .")
	}
	d := &Directory{Path: dir, Dockerfile: "Dockerfile"}
	if file == "" {
		_, err := os.Stat(filepath.Join(dir, d.Dockerfile))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.New(fault.NotFound, "%s has no Dockerfile", dir).WithRemedy("name it with -f FILE")
		}
		return d, err
	}
	if file != stdin {
		if name, ok := within(dir, file); ok {
			d.Dockerfile = name
			return d, nil
		}
		f, err := os.Open(file)
		if err != nil {
			return nil, fault.Wrap(fault.NotFound, err, "the Dockerfile %s cannot be read: %v", file, err)
		}
		defer f.Close()
		in = f
	}
	d.Dockerfile = ignore.Outside + "outside"
	if d.Outside, err = io.ReadAll(io.LimitReader(in, maxDockerfile+1)); err != nil {
		return nil, err
	}
	if len(d.Outside) > maxDockerfile {
		return nil, fault.New(fault.TooLarge, "the Dockerfile has more than %d bytes", maxDockerfile)
	}
	return d, nil
}

// within returns the name of a file below a directory.
func within(dir, file string) (string, bool) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	top, err := filepath.Abs(dir)
	if err != nil {
		return "", false
	}
	at, err := filepath.Abs(file)
	if err != nil {
		return "", false
	}
	rel, err := filepath.Rel(top, at)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// list returns what the directory leaves out.
func (d *Directory) list() (*ignore.List, error) {
	for _, name := range []string{d.Dockerfile + ignore.File, ignore.File} {
		text, err := os.ReadFile(filepath.Join(d.Path, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return ignore.Parse(text)
	}
	return ignore.Parse(nil)
}

// Write writes the directory as an archive, compressed, without what its .dockerignore leaves out. It calls skipped for
// what is no file, no directory and no link.
func (d *Directory) Write(ctx context.Context, to io.Writer, skipped func(name string)) error {
	list, err := d.list()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(d.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	z, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(z, 256<<10)
	w := tar.NewWriter(out)
	if d.Outside != nil {
		if err := w.WriteHeader(&tar.Header{Name: d.Dockerfile, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(d.Outside))}); err != nil {
			return err
		}
		if _, err := w.Write(d.Outside); err != nil {
			return err
		}
	}
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || name == "." {
			return err
		}
		out, all, err := list.Match(name)
		if err != nil {
			return err
		}
		own := name == d.Dockerfile || name == ignore.File || name == d.Dockerfile+ignore.File
		if out && !own {
			if e.IsDir() && all && !strings.HasPrefix(d.Dockerfile, name+"/") {
				return fs.SkipDir
			}
			return nil
		}
		return entry(w, root, name, e, skipped)
	})
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = z.Close()
	}
	return err
}

// entry writes one file, directory or link.
func entry(w *tar.Writer, root *os.Root, name string, e fs.DirEntry, skipped func(string)) error {
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it went away meanwhile
	}
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Format: tar.FormatPAX}
	if info.Mode()&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	switch {
	case info.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		return w.WriteHeader(h)
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := root.Readlink(filepath.FromSlash(name))
		if err != nil {
			return err
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, to
		return w.WriteHeader(h)
	case !info.Mode().IsRegular():
		skipped(name)
		return nil
	}
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	defer f.Close()
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	if n, err := io.Copy(w, io.LimitReader(f, h.Size)); err != nil || n < h.Size {
		if err == nil {
			err = fault.New(fault.Conflict, "%s became shorter while it was sent", name).WithRemedy("build again")
		}
		return err
	}
	return nil
}
