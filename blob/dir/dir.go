// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package dir keeps blobs as files of one directory. A link in that directory is not followed out
// of it, whoever made it.
package dir

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/blob"
	"sandpit.dev/fault"
)

const (
	suffix  = ".sandpit" // of a blob's file
	partial = ".part"    // of one that is being written
)

// Store is a [blob.Store] of a directory.
type Store struct {
	path, place string
	purpose     blob.Purpose
}

var (
	_ blob.Store  = (*Store)(nil)
	_ blob.Lister = (*Store)(nil)
)

// New returns the store of a directory, which is made when it is first used.
func New(path string) *Store { return Named(path, "directory "+path) }

// Named is New with a name for people of its own, as for a directory that may be moved.
func Named(path, place string) *Store { return &Store{path, place, blob.Archives()} }

// For has errors tell another purpose than archives, and returns the store.
func (s *Store) For(p blob.Purpose) *Store {
	s.purpose = p
	return s
}

// Place implements [blob.Store].
func (s *Store) Place() string { return s.place }

// Put implements [blob.Store].
func (s *Store) Put(ctx context.Context, name string, r io.Reader) error {
	if err := blob.CheckName(name); err != nil {
		return err
	}
	if err := os.MkdirAll(s.path, 0o700); err != nil {
		return s.failed(err, "made")
	}
	root, err := os.OpenRoot(s.path)
	if err != nil {
		return s.failed(err, "opened")
	}
	defer func() { _ = root.Close() }()
	part := name + partial
	if err := root.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.failed(err, "written to")
	}
	source := blob.NewReader(ctx, r)
	err = write(root, part, source)
	if err == nil {
		if err = root.Rename(part, name+suffix); err == nil {
			err = sync(root)
		}
	}
	if err == nil {
		return nil
	}
	_ = root.Remove(part) // and if not, Remove does it
	if source.Err() != nil {
		return source.Err()
	}
	return s.failed(err, "written to")
}

func write(root *os.Root, name string, r io.Reader) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// sync writes the names in a directory to the disk.
func sync(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Open implements [blob.Store].
func (s *Store) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := blob.CheckName(name); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, blob.Missing(s, name)
	}
	if err != nil {
		return nil, s.failed(err, "opened")
	}
	defer func() { _ = root.Close() }()
	// What has the name may be a pipe, which must not keep us waiting.
	f, err := root.OpenFile(name+suffix, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, blob.Missing(s, name)
	}
	if err != nil {
		return nil, s.failed(err, "read")
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no plain file")
	}
	if err != nil {
		_ = f.Close()
		return nil, s.failed(err, "read")
	}
	return &file{blob.NewReader(ctx, f), f}, nil
}

// Remove implements [blob.Store].
func (s *Store) Remove(ctx context.Context, name string) error {
	if err := blob.CheckName(name); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	root, err := os.OpenRoot(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return s.failed(err, "opened")
	}
	defer func() { _ = root.Close() }()
	for _, n := range []string{name + partial, name + suffix} {
		if err := root.Remove(n); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s.failed(err, "written to")
		}
	}
	if err := sync(root); err != nil {
		return s.failed(err, "written to")
	}
	return nil
}

// listed is how many names are read at a time.
const listed = 1000

// List implements [blob.Lister].
func (s *Store) List(ctx context.Context, each func(name string) error) error {
	d, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return s.failed(err, "opened")
	}
	defer func() { _ = d.Close() }()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		names, err := d.Readdirnames(listed)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return s.failed(err, "read")
		}
		for _, file := range names {
			name, is := strings.CutSuffix(file, suffix)
			if !is {
				name, is = strings.CutSuffix(file, partial)
			}
			if !is || blob.CheckName(name) != nil {
				continue
			}
			if err := each(name); err != nil {
				return err
			}
		}
	}
}

func (s *Store) failed(err error, what string) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fault.NoSpace(fault.HostDisk, err, "the disk of the %s, where %s are kept, is full", s.Place(), s.purpose.Kept).
			WithRemedy("make room there, or have the operator name another place (%s in the configuration)", s.purpose.Section)
	}
	return fault.Wrap(fault.Unavailable, err, "the %s, where %s are kept, cannot be %s", s.Place(), s.purpose.Kept, what).
		WithRemedy("see whether it is there and the server may write to it (%s.dir in the configuration)", s.purpose.Section)
}

type file struct {
	*blob.Reader
	f *os.File
}

func (f *file) Close() error { return f.f.Close() }
