// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"sandpit.dev/fault"
)

// Commit is an image that is made of files which are on this machine.
type Commit struct {
	// Name is a reference of it; "": its digest is its name.
	Name string
	// Base and Content decide the files: the digest of the image that they begin with, and what was done to it.
	Base, Content string
	Config        Config
	// Fill makes the files in a directory that is there and empty. It may link files of images.
	Fill func(ctx context.Context, root string) error
}

// Commit makes an image, unless one of the same base, content and config is here, and names it. It has no
// layers of its own: its files are in its root alone, shared with its base where they are as there. What a
// sandbox needs is added, as to an image that is imported. If it fails nothing is left.
func (s *Store) Commit(ctx context.Context, c Commit) (Image, error) {
	return s.commitAs(ctx, c, s.As(""))
}

func (s *Store) commitAs(ctx context.Context, c Commit, b Bringer) (Image, error) {
	var names []string
	if c.Name != "" {
		ref, err := ParseReference(c.Name)
		if err != nil {
			return Image{}, err
		}
		if ref.Digest != "" {
			return Image{}, fault.InvalidField("name", "%s has a digest, and an image that is built gets its own", shown(c.Name)).WithRemedy("leave out what begins with @")
		}
		names = []string{ref.String()}
		if err := b.may(names...); err != nil {
			return Image{}, err
		}
	}
	if err := CheckConfig(c.Config); err != nil {
		return Image{}, err
	}
	data, err := json.Marshal(struct {
		Schema        int
		Base, Content string
		Config        Config
	}{imageSchema, c.Base, c.Content, c.Config})
	if err != nil {
		return Image{}, err
	}
	sum := sha256.Sum256(data)
	digest := digestPrefix + hex.EncodeToString(sum[:])
	l, err := s.begin()
	if err != nil {
		return Image{}, err
	}
	defer l.release()
	give, err := s.turn(ctx, digest)
	if err != nil {
		return Image{}, err
	}
	defer give()
	img, err := s.FindDigest(digest[len(digestPrefix):])
	fresh := fault.Is(err, fault.NotFound)
	if fresh {
		var limits Limits
		if limits, err = b.left(); err == nil {
			img, err = s.commit(ctx, digest, c, limits)
		}
	}
	if err != nil {
		return Image{}, hostError(err)
	}
	if err := b.name(img, names); err != nil {
		if fresh {
			s.forget(img)
		}
		return Image{}, err
	}
	return s.FindDigest(img.Digest[len(digestPrefix):])
}

func (s *Store) commit(ctx context.Context, digest string, c Commit, limits Limits) (Image, error) {
	work, err := os.MkdirTemp(filepath.Join(s.dir, workName), "image-")
	if err != nil {
		return Image{}, err
	}
	defer func() { _ = removeAll(work) }() // what is finished is elsewhere by then
	left := newBudget(limits, s.dir)
	if err := left.disk(); err != nil {
		return Image{}, err
	}
	path := filepath.Join(work, rootName)
	if err := os.Mkdir(path, 0o755); err != nil {
		return Image{}, err
	}
	if err := c.Fill(ctx, path); err != nil {
		return Image{}, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return Image{}, err
	}
	defer root.Close()
	if err := complete(ctx, root, os.Geteuid() == 0, c.Config.User, left); err != nil {
		return Image{}, err
	}
	img := Image{Digest: digest, ConfigDigest: digest, Architecture: s.arch, Config: c.Config, Created: time.Now().UTC(), Layers: []Layer{}, Built: true}
	if img.SizeBytes, img.Files, err = measure(path); err != nil {
		return Image{}, err
	}
	return s.place(work, img)
}

// place names the image in the directory work, whose files are complete, atomically.
func (s *Store) place(work string, img Image) (Image, error) {
	data, err := json.MarshalIndent(manifestFile{imageSchema, img}, "", "  ")
	if err != nil {
		return Image{}, err
	}
	if err := os.WriteFile(filepath.Join(work, imageFile), append(data, '\n'), 0o600); err != nil {
		return Image{}, err
	}
	if err := s.flush(work); err != nil {
		return Image{}, err
	}
	name := directoryOf(img.Digest)
	final := filepath.Join(s.dir, imagesName, name)
	if err := os.Rename(work, final); err != nil {
		// Another process may have been faster.
		if found, lerr := s.load(name); lerr != nil || found.Digest != img.Digest {
			return Image{}, err
		}
	}
	if err := syncDir(filepath.Dir(final)); err != nil {
		return Image{}, err
	}
	if img, err = s.load(name); err != nil {
		return Image{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images[img.Digest] = img
	s.changed()
	return img, nil
}

// Spool returns an empty file on the disk of images that has no name: it is gone when it is closed, or when
// this process is killed.
func (s *Store) Spool() (*os.File, error) {
	l, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer l.release()
	f, err := os.CreateTemp(filepath.Join(s.dir, workName), "spool-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Room returns why the disk of images takes nothing more, fault.Full, or nil.
func (s *Store) Room() error { return newBudget(s.limits, s.dir).disk() }
