// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Bounds of a skill.
const (
	MaxBytes       = 10 << 20 // of a package as it comes, and of its files together
	MaxFiles       = 100
	MaxName        = 64        // bytes
	MaxDescription = 1024      // characters
	MaxText        = 256 << 10 // bytes of SKILL.md, which is answered within JSON and read by models
)

// File is the name of the file that makes a directory a skill.
const File = "SKILL.md"

// Meta is what the front matter of a SKILL.md says.
type Meta struct {
	Name          string
	Description   string
	Author        string
	Version       string
	License       string
	Compatibility string
	Tags          []string
	AllowedTools  []string
}

// Source is what a skill was made of.
type Source string

const (
	Imported Source = "imported" // a package
	Manual   Source = "manual"   // text
)

// Skill is the record of a skill that a project keeps.
type Skill struct {
	ID      string // a random UUID
	Project string // the owner
	Meta
	Source    Source
	Digest    string // of its files, see [Package.Digest]
	Size      int64  // bytes of its package
	Files     []FileInfo
	Text      string // of SKILL.md
	CreatedAt time.Time
	UpdatedAt time.Time
	CreatedBy string // the name of the token
}

// FileInfo is a file of a skill without its content.
type FileInfo struct {
	Path string // below the skill's directory, with slashes
	Size int64
	Exec bool
}

// Package is a skill with all its files, as it is given out and installed.
type Package struct {
	Meta
	Files []Content // sorted by path
}

// Content is a file of a [Package].
type Content struct {
	Path string // below the skill's directory, with slashes
	Exec bool
	Data []byte
}

// Text returns the text of SKILL.md.
func (p *Package) Text() string {
	data, _ := p.Read(File)
	return string(data)
}

// WithText returns a package with another SKILL.md, which is read, and the same files beside it.
func (p *Package) WithText(text string) (*Package, error) {
	meta, err := readText([]byte(text))
	if err != nil {
		return nil, err
	}
	out := &Package{Meta: meta, Files: slices.Clone(p.Files)}
	for i := range out.Files {
		if out.Files[i].Path == File {
			out.Files[i].Data = []byte(text)
		}
	}
	return out, nil
}

// Read returns the content of a file.
func (p *Package) Read(path string) (data []byte, ok bool) {
	i, ok := slices.BinarySearchFunc(p.Files, path, func(f Content, path string) int { return strings.Compare(f.Path, path) })
	if !ok {
		return nil, false
	}
	return p.Files[i].Data, true
}

// List returns the files without their content.
func (p *Package) List() []FileInfo {
	out := make([]FileInfo, len(p.Files))
	for i, f := range p.Files {
		out[i] = FileInfo{f.Path, int64(len(f.Data)), f.Exec}
	}
	return out
}

// Digest returns a hash of the paths, modes and contents of all files: two packages have the same if
// they install the same, however they were compressed.
func (p *Package) Digest() string {
	h := sha256.New()
	for _, f := range p.Files {
		fmt.Fprintf(h, "%q %t %d\n", f.Path, f.Exec, len(f.Data))
		h.Write(f.Data)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// mode returns the permission bits of a file.
func (f *Content) mode() fs.FileMode {
	if f.Exec {
		return 0o755
	}
	return 0o644
}
