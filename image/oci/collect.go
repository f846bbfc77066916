// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"sandpit.dev/fault"
)

// Collect removes the layers that no image uses, and returns how many bytes they had. While images are
// made it is fault.Conflict. With dry it only counts.
func (s *Store) Collect(dry bool) (int64, error) {
	if dry {
		return s.collect(0, nil, true)
	}
	l, err := s.alone()
	if err != nil {
		return 0, err
	}
	defer l.release()
	return s.collect(0, nil, false)
}

// collect removes layers that no image uses and that are of some age: those of only, or for nil all. The
// caller has the lock alone, unless it is dry.
func (s *Store) collect(age time.Duration, only []Layer, dry bool) (int64, error) {
	images, err := s.scan()
	if err != nil {
		return 0, err
	}
	used := make(map[string]bool)
	for _, img := range images {
		for _, l := range img.Layers {
			used[layerName(l)] = true
		}
	}
	dir := filepath.Join(s.dir, layersName)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var freed int64
	for _, e := range entries {
		if used[e.Name()] || only != nil && !slices.ContainsFunc(only, func(l Layer) bool { return layerName(l) == e.Name() }) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return freed, err
		}
		if time.Since(info.ModTime()) < age {
			continue
		}
		path := filepath.Join(dir, e.Name())
		size, _, err := measure(path)
		if err == nil && !dry {
			err = s.discard(path)
		}
		if err != nil {
			return freed, err
		}
		freed += size
	}
	return freed, nil
}

// layerName is the name of the directory of a layer.
func layerName(l Layer) string { return strings.TrimPrefix(l.DiffID, digestPrefix) }

// Remove removes an image with its references and the layers that it alone had, and returns how many bytes that
// frees. Whether anything uses it is for the caller to know. While images are made its layers stay, and go
// when that is over.
func (s *Store) Remove(ctx context.Context, digest string) (int64, error) {
	img, err := s.FindDigest(strings.TrimPrefix(digest, digestPrefix))
	if err != nil {
		return 0, err
	}
	freed, err := s.unlink(ctx, img)
	if err != nil {
		return freed, err
	}
	s.mu.Lock()
	s.owed = append(s.owed, img.Layers...)
	s.mu.Unlock()
	n, err := s.settleLayers()
	return freed + n, err
}

// unlink removes the references and the root of an image.
func (s *Store) unlink(ctx context.Context, img Image) (int64, error) {
	l, err := s.begin()
	if err != nil {
		return 0, err
	}
	defer l.release()
	give, err := s.turn(ctx, img.Digest) // who makes the same image names it afterwards
	if err != nil {
		return 0, err
	}
	defer give()
	freed, err := own(img.Root)
	if err != nil {
		return 0, err
	}
	// Its names first: what has a name is whole.
	if err := s.rename(func(references, owners map[string]string) error {
		maps.DeleteFunc(references, func(_, d string) bool { return d == img.Digest })
		delete(owners, img.Digest)
		return nil
	}); err != nil {
		return 0, err
	}
	if err := s.discard(filepath.Join(s.dir, imagesName, directoryOf(img.Digest))); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.images, img.Digest)
	return freed, nil
}

// settleLayers removes the layers of removed images, unless others have them or images are being made.
func (s *Store) settleLayers() (int64, error) {
	s.mu.Lock()
	owed := s.owed
	s.owed = nil
	s.mu.Unlock()
	if len(owed) == 0 {
		return 0, nil
	}
	l, err := s.alone()
	if err == nil {
		defer l.release()
		return s.collect(0, owed, false)
	}
	s.mu.Lock()
	s.owed = append(s.owed, owed...)
	s.mu.Unlock()
	if fault.Is(err, fault.Conflict) {
		return 0, nil
	}
	return 0, err
}

// ended gives back the right to make images, and removes what had to wait for that.
func (s *Store) ended(l *lock) {
	l.release()
	if _, err := s.settleLayers(); err != nil {
		s.log.Warn("layers that no image uses cannot be removed", "error", err)
	}
}

// Freed returns how many bytes the removal of an image would free.
func (s *Store) Freed(img Image) (int64, error) {
	freed, err := own(img.Root)
	if err != nil {
		return 0, err
	}
	shared := s.Sharing(img)
	for i, l := range img.Layers {
		if shared[i] > 0 || slices.ContainsFunc(img.Layers[:i], func(o Layer) bool { return o.DiffID == l.DiffID }) {
			continue
		}
		n, _, err := measure(filepath.Join(s.dir, layersName, layerName(l)))
		if err != nil {
			return 0, err
		}
		freed += n
	}
	return freed, nil
}

// Sharing returns of each layer of an image how many other images have it.
func (s *Store) Sharing(img Image) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]int, len(img.Layers))
	for _, o := range s.images {
		if o.Digest == img.Digest {
			continue
		}
		for i, l := range img.Layers {
			if slices.ContainsFunc(o.Layers, func(x Layer) bool { return x.DiffID == l.DiffID }) {
				out[i]++
			}
		}
	}
	return out
}

// own returns what a root takes on disk beside the files of layers: its directories, and what was added.
func own(root string) (size int64, err error) {
	err = filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fs.ErrInvalid
		}
		if d.IsDir() || st.Nlink == 1 {
			size += st.Blocks * 512
		}
		return nil
	})
	return size, err
}

// discard removes a directory that is whole until it is out of sight.
func (s *Store) discard(dir string) error {
	trash, err := os.MkdirTemp(filepath.Join(s.dir, workName), "trash-")
	if err != nil {
		return err
	}
	if err := os.Rename(dir, filepath.Join(trash, "x")); err != nil {
		return err
	}
	return removeAll(trash)
}
