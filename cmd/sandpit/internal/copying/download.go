// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/terminal"
	"sandpit.dev/fault"
)

// defaultCopyMiB is the most that one copy out of a sandbox writes here unless told otherwise.
// A sandbox's disk bounds nothing: a file of holes is as long as its program says.
const defaultCopyMiB = 10 << 10

// download copies files and trees of sandboxes to this machine.
func (t *copier) download(ctx context.Context, from []endpoint, to string) error {
	if to == "-" {
		return t.print(ctx, from[0])
	}
	info, err := os.Stat(to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Denied, err, "%s cannot be written to", to)
	}
	into := err == nil && info.IsDir()
	if len(from) > 1 && !into {
		return fault.New(fault.NotFound, "%s is not a directory here, as several sources need one", to).WithRemedy("make it: mkdir -p %s", to)
	}
	into = into || os.IsPathSeparator(to[len(to)-1])
	for _, e := range from {
		if err := t.fetch(ctx, e, to, into); err != nil {
			return err
		}
	}
	return nil
}

// fetch copies one file or tree.
func (t *copier) fetch(ctx context.Context, from endpoint, to string, into bool) error {
	a, err := t.open(ctx, from)
	if err != nil {
		return err
	}
	defer a.Close()
	if _, inside := contents(from.path); into && !(inside && a.Type == "dir") {
		to = filepath.Join(to, path.Base(path.Clean(from.path)))
	}
	if err := t.copy.Unpack(ctx, a, to); err != nil {
		return err
	}
	t.leftBy(a)
	return nil
}

// open opens a file or tree of a sandbox as an archive. A link that is named itself is followed.
func (t *copier) open(ctx context.Context, from endpoint) (*client.Archive, error) {
	o := client.PackOptions{User: t.user, Follow: t.copy.Follow, Exclude: t.copy.Exclude}
	a, err := t.cl.PackFiles(ctx, from.ref, from.path, o)
	if err != nil || a.Type != "symlink" {
		return a, err
	}
	_ = a.Close() // nothing of it is wanted
	dir, err := t.isDir(ctx, from)
	if err != nil {
		return nil, err
	}
	if dir {
		from.path += "/."
	} else {
		o.Follow = true
	}
	return t.cl.PackFiles(ctx, from.ref, from.path, o)
}

// print writes a file to standard output as it is, and a directory as a tar archive.
func (t *copier) print(ctx context.Context, from endpoint) error {
	dir, err := t.isDir(ctx, from)
	if err != nil {
		return err
	}
	if !dir {
		f, err := t.cl.ReadFile(ctx, from.ref, from.path, client.ReadOptions{User: t.user})
		if err != nil {
			return err
		}
		defer f.Close()
		if f.Size > t.copy.Most {
			return t.copy.TooLarge(from.path, "its "+output.Bytes(f.Size))
		}
		return t.receive(f, from.path, f.Size)
	}
	if _, is := terminal.Of(t.a.Stdout); is {
		return fault.New(fault.Invalid, "%s is a directory, and a terminal shows no tar archive", from.path).
			WithRemedy("send it to a file or a program: sandpit cp %s:%s - | tar t", from.ref, from.path)
	}
	a, err := t.open(ctx, from)
	if err != nil {
		return err
	}
	defer a.Close()
	if err := t.receive(a, from.path, -1); err != nil {
		return err
	}
	t.leftBy(a)
	return nil
}

// receive copies to standard output as much as may come.
func (t *copier) receive(r io.Reader, name string, size int64) error {
	n, err := io.Copy(t.a.Stdout, io.LimitReader(t.copy.Reader(r, path.Base(name), size), t.copy.Most+1)) // its size may not have been told
	if err == nil && n > t.copy.Most {
		return t.copy.TooLarge(name, "what it still sends")
	}
	return err
}
