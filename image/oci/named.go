// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/atomicfile"
)

func (s *Store) readReferences() (map[string]string, error) {
	out := make(map[string]string)
	data, err := os.ReadFile(filepath.Join(s.dir, refsName))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the references of images cannot be read").
			WithRemedy("remove %s; the images stay, and can be named by their digests", filepath.Join(s.dir, refsName))
	}
	return out, nil
}

// rename changes what references mean, and whose they are, on disk first.
func (s *Store) rename(change func(references, owners map[string]string) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := os.OpenFile(filepath.Join(s.dir, refsName+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	// Whoever holds it holds it for the time of one write.
	if err := flock(f, unix.LOCK_EX); err != nil {
		return err
	}
	all, err := s.readReferences()
	if err != nil {
		return err
	}
	owners, err := s.readOwners()
	if err != nil {
		return err
	}
	if err := change(all, owners); err != nil {
		return err
	}
	// Whose first: a name that is new and nobody's would be anybody's after a kill in between.
	if err := s.writeOwners(all, owners); err != nil {
		return err
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(s.dir, refsName), append(data, '\n'), 0o600); err != nil {
		return err
	}
	s.references, s.owners = all, owners
	s.changed()
	return syncDir(s.dir)
}

// Find returns the image that a reference or a digest means: fault.NotFound if it is not here. A digest may be whole, or its
// first 12 digits.
func (s *Store) Find(name string) (Image, error) {
	if hex := strings.TrimPrefix(name, digestPrefix); isHex(hex) && (len(hex) == 64 || len(hex) == digestDir && name != hex) {
		return s.FindDigest(hex)
	}
	ref, err := ParseReference(name)
	if err != nil {
		return Image{}, err
	}
	for again := false; ; again = true {
		s.mu.Lock()
		digest := s.meant(ref)
		img, ok := s.images[digest]
		img.References = s.namesOf(digest)
		s.mu.Unlock()
		if ok {
			return img, nil
		}
		if again {
			return Image{}, fault.New(fault.NotFound, "the image %s is not here", shown(ref.Familiar())).
				WithRemedy("bring it with: sandpit image pull %s", ref.Familiar())
		}
		if err := s.read(); err != nil { // another process may have brought it
			return Image{}, err
		}
	}
}

// meant returns the digest that a reference means; "": none. The caller holds mu.
func (s *Store) meant(ref Reference) string {
	if digest, ok := s.references[ref.String()]; ok {
		return digest
	}
	if ref.Digest != "" {
		return ref.Digest // of the manifest itself, where ref's may be that of an index
	}
	return ""
}

// Known returns the image of a digest, which is whole or its first 12 digits, if this process knows of it, and
// makes no system call.
func (s *Store) Known(hex string) (Image, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for digest, img := range s.images {
		if strings.HasPrefix(strings.TrimPrefix(digest, digestPrefix), hex) {
			img.References = s.namesOf(digest)
			return img, true
		}
	}
	return Image{}, false
}

// FindDigest returns the image of a digest, which is whole or its first 12 digits.
func (s *Store) FindDigest(hex string) (Image, error) {
	for again := false; ; again = true {
		if img, ok := s.Known(hex); ok {
			return img, nil
		}
		if again {
			return Image{}, fault.New(fault.NotFound, "there is no image with the digest %s here", shown(hex)).
				WithRemedy("import it again with: sandpit image import FILE")
		}
		if err := s.read(); err != nil {
			return Image{}, err
		}
	}
}

// namesOf returns the references of a digest, sorted. The caller holds mu.
func (s *Store) namesOf(digest string) []string {
	var out []string
	for r, d := range s.references {
		if d == digest {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return out
}
