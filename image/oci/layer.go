// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// layer is layer.json: what a layer is beside its files. Names are those of the archive, cleaned.
type layer struct {
	Schema  int      `json:"schema"`
	DiffID  string   `json:"diff_id"`
	Bytes   int64    `json:"bytes"`   // of its archive, not compressed
	Removed []string `json:"removed"` // files of the layers below that it takes away
	Opaque  []string `json:"opaque"`  // directories of which it takes away all that layers below have
	Implied []string `json:"implied"` // directories that no entry is about
	Devices int      `json:"devices"` // nodes that were left out
	Foreign int      `json:"foreign"` // entries whose owner a sandbox does not have
	dir     string
}

const (
	layerSchema = 1
	layerFile   = "layer.json"
	filesName   = "files"
)

// blob is a layer as a source has it.
type blob struct {
	diffID string // of the archive in it
	digest string // of its bytes; "": nobody said
	size   int64  // of its bytes; -1: nobody said
	open   func(ctx context.Context) (io.ReadCloser, error)
}

// layer returns a layer, and unpacks it if it is not there. Of several callers one does it.
func (s *Store) layer(ctx context.Context, b blob, left *budget, saw func(int64)) (*layer, error) {
	give, err := s.turn(ctx, b.diffID)
	if err != nil {
		return nil, err
	}
	defer give()
	dir := filepath.Join(s.dir, layersName, strings.TrimPrefix(b.diffID, digestPrefix))
	if l, err := loadLayer(dir, b.diffID); err == nil {
		saw(max(b.size, 0))
		return l, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	work, err := os.MkdirTemp(filepath.Join(s.dir, workName), "layer-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = removeAll(work) }() // what is finished is elsewhere by then
	l, err := s.unpack(ctx, b, work, left, saw)
	if err != nil {
		return nil, err
	}
	if err := s.flush(work); err != nil {
		return nil, err
	}
	if err := os.Rename(work, dir); err != nil {
		if l, lerr := loadLayer(dir, b.diffID); lerr == nil {
			return l, nil // another process was faster
		}
		return nil, err
	}
	l.dir = dir
	return l, syncDir(filepath.Dir(dir))
}

// unpack makes the layer in the directory work, and compares both digests.
func (s *Store) unpack(ctx context.Context, b blob, work string, left *budget, saw func(int64)) (_ *layer, err error) {
	files := filepath.Join(work, filesName)
	if err := os.Mkdir(files, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(files)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	from, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	if err := left.disk(); err != nil {
		return nil, err
	}
	outer := newHashed(&seen{r: io.LimitReader(from, most(b.size)+1), saw: saw})
	expanded, err := expand(outer)
	if err != nil {
		return nil, err
	}
	defer expanded.Close()
	inner := newHashed(&bounded{r: expanded, left: 2*left.limits.Bytes + archiveOverhead*left.limits.Files})
	l, err := unpack(ctx, inner, root, os.Geteuid() == 0, left)
	if err == nil {
		// What follows the archive's end counts for its digest.
		_, err = io.Copy(io.Discard, inner)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, outer)
	}
	if err != nil {
		return nil, err
	}
	if b.size >= 0 && outer.n != b.size {
		return nil, refused("the layer %s has %d bytes, and is said to have %d", b.digest, outer.n, b.size)
	}
	if b.digest != "" && outer.digest() != b.digest {
		return nil, refused("the layer %s has the digest %s", b.digest, outer.digest())
	}
	if got := inner.digest(); got != b.diffID {
		return nil, refused("the files of a layer have the digest %s, and by the image's config %s", got, b.diffID)
	}
	l.Schema, l.DiffID, l.Bytes, l.dir = layerSchema, b.diffID, inner.n, work
	data, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	return l, os.WriteFile(filepath.Join(work, layerFile), data, 0o600)
}

// archiveOverhead is what an entry of a tar archive takes at most beside its content, in the mean.
const archiveOverhead = 4096

func most(size int64) int64 {
	if size < 0 {
		return maxBlob
	}
	return size
}

func loadLayer(dir, diffID string) (*layer, error) {
	data, err := os.ReadFile(filepath.Join(dir, layerFile))
	if err != nil {
		return nil, err
	}
	l := new(layer)
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("%s in %s: %w", layerFile, dir, err)
	}
	if l.Schema != layerSchema || l.DiffID != diffID {
		return nil, fmt.Errorf("%s in %s belongs elsewhere (schema %d, layer %q)", layerFile, dir, l.Schema, l.DiffID)
	}
	l.dir = dir
	return l, nil
}

// bounded is a reader that has an end.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, refused("a layer's archive does not end where its files do")
	}
	return n, err
}

// seen tells how many bytes were read.
type seen struct {
	r   io.Reader
	saw func(int64)
}

func (s *seen) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if n > 0 {
		s.saw(int64(n))
	}
	return n, err
}

// syncAll flushes the file system of a directory: a power cut must not leave empty files in what is whole.
func syncAll(dir string) error {
	return withDir(dir, func(f *os.File) error { return unix.Syncfs(int(f.Fd())) })
}

func syncDir(dir string) error { return withDir(dir, (*os.File).Sync) }

func withDir(dir string, do func(*os.File) error) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return do(f)
}

// removeAll removes a tree, also one whose directories lack the bits for that.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || os.Geteuid() == 0 {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
