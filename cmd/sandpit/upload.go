// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// upload copies a local file or directory into the sandbox.
func (t *transfer) upload(ctx context.Context, from, to string) error {
	into, err := t.isDir(ctx, to)
	if err != nil {
		return err
	}
	if from == "-" {
		if into {
			return fault.New(fault.Invalid, "%s is a directory; standard input needs the name of a file", to)
		}
		return t.cl.WriteFile(ctx, t.ref, to, t.a.stdin, client.WriteOptions{User: t.user, Sync: t.sync})
	}
	info, err := local(from)
	if err != nil {
		return err
	}
	dir, inside := contents(from)
	if (into || strings.HasSuffix(to, "/")) && !(inside && info.IsDir()) {
		abs, err := filepath.Abs(from) // of "..", too, a name
		if err != nil {
			return err
		}
		to = path.Join(to, filepath.Base(abs))
	}
	if !info.IsDir() {
		f, err := os.Open(from)
		if err != nil {
			return fault.Wrap(fault.Denied, err, "%s cannot be read", from)
		}
		defer f.Close()
		return t.put(ctx, f, to)
	}
	return t.uploadDir(ctx, dir, to)
}

// uploadDir copies what is in a local directory to a directory inside.
func (t *transfer) uploadDir(ctx context.Context, from, to string) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return fault.Wrap(fault.Denied, err, "%s cannot be read", from)
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return fault.Wrap(fault.Denied, err, "%s cannot be read", filepath.Join(from, p))
		}
		target := path.Join(to, p)
		switch {
		case d.IsDir():
			info, err := d.Info()
			if err != nil {
				return err
			}
			return t.mkdir(ctx, target, info.Mode())
		case !d.Type().IsRegular():
			t.leftOut(filepath.Join(from, p), kindOf(d.Type()))
			return nil
		}
		f, err := root.Open(p)
		if err != nil {
			return fault.Wrap(fault.Denied, err, "%s cannot be read", filepath.Join(from, p))
		}
		defer f.Close()
		return t.put(ctx, f, target)
	})
}

func (t *transfer) mkdir(ctx context.Context, p string, mode fs.FileMode) error {
	r := v1.MakeDir{Path: p, Mode: new(fmt.Sprintf("%04o", mode.Perm()|0o700))}
	if t.user != "" {
		r.User = &t.user
	}
	err := t.cl.Mkdir(ctx, t.ref, r)
	if fault.Is(err, fault.Exists) {
		return nil
	}
	return err
}

// put writes one file.
func (t *transfer) put(ctx context.Context, f *os.File, to string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r := &counted{r: io.LimitReader(f, info.Size()), t: t, name: path.Base(to), size: info.Size()}
	o := client.WriteOptions{User: t.user, Mode: info.Mode().Perm(), Size: info.Size(), Sync: t.sync}
	if info.Size() == 0 { // a size of zero would mean that it is not known
		return t.cl.WriteFile(ctx, t.ref, to, strings.NewReader(""), o)
	}
	return t.cl.WriteFile(ctx, t.ref, to, r, o)
}

// counted shows how far reading is.
type counted struct {
	r    io.Reader
	t    *transfer
	name string
	done int64
	size int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.done += int64(n)
	c.t.moved(c.name, int64(n), c.done, c.size)
	return n, err
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a link"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "not a file"
}
