// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Collect removes the layers that no image uses, and returns how many bytes they had. While images are
// made it is fault.Conflict.
func (s *Store) Collect() (int64, error) {
	l, err := s.alone()
	if err != nil {
		return 0, err
	}
	defer l.release()
	return s.collect(0)
}

// collect removes layers that no image uses and that are of some age. The caller has the lock alone.
func (s *Store) collect(age time.Duration) (int64, error) {
	images, err := s.scan()
	if err != nil {
		return 0, err
	}
	used := make(map[string]bool)
	for _, img := range images {
		for _, l := range img.Layers {
			used[strings.TrimPrefix(l.DiffID, digestPrefix)] = true
		}
	}
	dir := filepath.Join(s.dir, layersName)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var freed int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return freed, err
		}
		if used[e.Name()] || time.Since(info.ModTime()) < age {
			continue
		}
		path := filepath.Join(dir, e.Name())
		size, _, err := measure(path)
		if err == nil {
			err = s.discard(path)
		}
		if err != nil {
			return freed, err
		}
		freed += size
	}
	return freed, nil
}

// Remove removes an image with its references. Whether anything uses it is for the caller to know. The layers that
// it alone had stay until Collect.
func (s *Store) Remove(digest string) error {
	l, err := s.alone()
	if err != nil {
		return err
	}
	defer l.release()
	img, err := s.FindDigest(strings.TrimPrefix(digest, digestPrefix))
	if err != nil {
		return err
	}
	// Its names first: what has a name is whole.
	if err := s.rename(func(all map[string]string) {
		maps.DeleteFunc(all, func(_, d string) bool { return d == img.Digest })
	}); err != nil {
		return err
	}
	if err := s.discard(filepath.Join(s.dir, imagesName, directoryOf(img.Digest))); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.images, img.Digest)
	return nil
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
