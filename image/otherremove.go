// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/image/oci"
)

// Other returns an image of others by a reference or a digest, and reports whether the name means one. What was found
// before is found without a system call.
func (s *Store) Other(name string) (Image, bool) {
	_, err := resolve(s.recipes, *s.policy.Load(), name)
	if !fault.Is(err, fault.NotFound) {
		return Image{}, false
	}
	img, err := s.other(name, err)
	return img, err == nil
}

// Layer is a layer of an image of others.
type Layer struct {
	oci.Layer
	Images int // other images here that have it
}

// Layers returns the layers of an image of others, the lowest first.
func (s *Store) Layers(img Image) []Layer {
	if img.Other == nil {
		return nil
	}
	shared := s.others.Sharing(*img.Other)
	all := make([]Layer, 0, len(shared))
	for i, l := range img.Other.Layers {
		all = append(all, Layer{l, shared[i]})
	}
	return all
}

// Freed returns how many bytes the removal of a build frees: of an image of others not those of layers that other
// images have.
func (s *Store) Freed(img Image) (int64, error) {
	if img.Other == nil {
		return img.SizeBytes, nil
	}
	return s.others.Freed(*img.Other)
}

// CollectLayers removes the layers that no image of others uses, as pulls that were broken off leave them, and returns
// how many bytes they took. While an image is pulled or imported they stay. With dry it only counts.
func (s *Store) CollectLayers(dry bool) (int64, error) {
	freed, err := s.others.Collect(dry)
	if fault.Is(err, fault.Conflict) {
		return 0, nil
	}
	return freed, err
}

// withdrawOther is Withdraw for an image of others: by its digest, whichever of its names is asked for.
func (s *Store) withdrawOther(img Image, digests []string) (*Withdrawal, error) {
	for _, digest := range digests {
		hex, err := digestHex(digest)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(strings.TrimPrefix(img.Digest, "sha256:"), hex) {
			return nil, noBuild(img.Name, hex)
		}
	}
	w := &Withdrawal{s: s, builds: []Image{img}, key: img.Digest, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving[w.key] != nil {
		return nil, leavingError(img.Name)
	}
	if err := s.unread(w.builds); err != nil {
		return nil, err
	}
	s.leaving[w.key] = w
	return w, nil
}

// removeOther removes the image of others that is withdrawn.
func (w *Withdrawal) removeOther(img Image) (int64, error) {
	w.s.letGo(keyOf(img))
	f, err := w.lock(img)
	if err != nil || f == nil {
		return 0, err
	}
	defer f.Close()
	bytes, err := w.s.others.Remove(context.Background(), img.Digest)
	if err == nil {
		w.s.log.Info("removed an image of others", "image", img.Name, "digest", img.Digest, "bytes", bytes)
	}
	return bytes, err
}

// kept notes that this process uses an image of others, so that no other one removes it.
func (s *Store) kept(img Image) error {
	s.mu.RLock()
	leaving, held := s.leaving[img.Digest] != nil, s.held[keyOf(img)] != nil
	s.mu.RUnlock()
	if leaving {
		return leavingError(img.Name)
	}
	if held {
		return nil
	}
	err := s.keep(img)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOENT) {
		// Another process removed it.
		if err := s.others.Refresh(); err != nil {
			return err
		}
		return noDigest(img.Name, dirOf(img))
	}
	return err
}

// keyOf names the directory of a build in Store.held.
func keyOf(img Image) string {
	if img.Other != nil {
		return othersName + "/" + dirOf(img)
	}
	return img.Name + "/" + dirOf(img)
}
