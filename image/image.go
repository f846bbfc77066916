// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sandpit.dev/image/oci"
)

// Image is one built root file system. It is complete and never changes. The
// maps are shared by all who hold the image: read them only.
type Image struct {
	// Name is the catalogue's name, whatever spelling was asked for.
	Name string
	// Digest is "sha256:" and 64 hex digits, over the recipe and the exact
	// versions that it resolved to. It names the image for ever.
	Digest string
	// Root is the absolute path of the root file system. Nothing may write there.
	Root string
	// Versions says what is really inside ("python": "3.11.2"), as read from
	// the finished root.
	Versions map[string]string
	// Absent lists, sorted, what people look for and Root was found to lack ("docker").
	Absent []string
	// SizeBytes is what Root takes on disk; Files counts its entries.
	SizeBytes int64
	Files     int64
	Created   time.Time
	// Env is what a process in the image should find in its environment (PATH, LANG).
	Env map[string]string
	// Other tells of an image that others made; nil: it is of the catalogue.
	Other *oci.Image

	recipe string
}

// digestDir is how many hex digits of a digest name its directory.
const digestDir = 12

// manifest is image.json.
type manifest struct {
	Schema    int               `json:"schema"`
	Name      string            `json:"name"`
	Digest    string            `json:"digest"`
	Recipe    string            `json:"recipe"`
	Created   time.Time         `json:"created"`
	SizeBytes int64             `json:"size_bytes"`
	Files     int64             `json:"files"`
	Versions  map[string]string `json:"versions"`
	Absent    []string          `json:"absent,omitempty"`
	Env       map[string]string `json:"env"`
}

const (
	manifestName   = "image.json"
	manifestSchema = 1
	rootName       = "rootfs"
)

func (m manifest) write(dir string) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, manifestName), append(data, '\n'), 0o644)
}

// load reads the image in dir. An error of fs.ErrNotExist means that dir holds none.
func load(dir string) (Image, error) {
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return Image{}, err
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return Image{}, fmt.Errorf("%s in %s: %w", manifestName, dir, err)
	}
	if m.Schema != manifestSchema {
		return Image{}, fmt.Errorf("%s in %s has schema %d, this program reads %d", manifestName, dir, m.Schema, manifestSchema)
	}
	hex, err := digestHex(m.Digest)
	if err != nil || len(hex) != 64 || filepath.Base(dir) != hex[:digestDir] || filepath.Base(filepath.Dir(dir)) != m.Name {
		return Image{}, fmt.Errorf("%s in %s belongs to another directory (name %q, digest %q)", manifestName, dir, m.Name, m.Digest)
	}
	root := filepath.Join(dir, rootName)
	info, err := os.Lstat(root)
	if err != nil {
		return Image{}, err
	}
	if !info.IsDir() {
		return Image{}, fmt.Errorf("%s is not a directory", root)
	}
	return Image{
		Name: m.Name, Digest: m.Digest, Root: root, Versions: m.Versions, Absent: m.Absent, SizeBytes: m.SizeBytes,
		Files: m.Files, Created: m.Created, Env: m.Env, recipe: m.Recipe,
	}, nil
}

// scan returns the images under DIR/NAME, in no order. It passes what cannot be read to skipped
// and leaves it out: one broken directory must not hide the rest.
func scan(dir string, skipped func(path string, err error)) ([]Image, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var images []Image
	for _, e := range entries {
		if !e.IsDir() || len(e.Name()) != digestDir || !isHex(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		img, err := load(path)
		if err != nil {
			skipped(path, err)
			continue
		}
		images = append(images, img)
	}
	return images, nil
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return s != ""
}
