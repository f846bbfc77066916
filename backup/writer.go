// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"
)

// Format is the version of the form.
const Format = 1

const (
	headEntry     = "backup.json"
	manifestEntry = "manifest.json"
	chunk         = 1 << 20
	maxHead       = 64 << 10
	maxManifest   = 256 << 20
	maxParts      = 2_000_000
)

// partName is what a part can be named: a kind and an id, or a word.
var partName = regexp.MustCompile(`^[a-z]+(/[a-z0-9][a-z0-9.-]{0,63})?$`)

// Head is the first entry.
type Head struct {
	Format  int       `json:"format"`
	Version string    `json:"version"` // of sandpit
	Time    time.Time `json:"time"`    // of the records
}

// Part is one part in the manifest.
type Part struct {
	Name    string `json:"name"`
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
	LeftOut string `json:"left_out,omitempty"` // why the part is not to be restored; "": it is whole
}

// Image is a build of an image that sandboxes and snapshots were made of.
type Image struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// Manifest is the last entry: a backup without it was cut off.
type Manifest struct {
	Head
	Parts  []Part  `json:"parts"`
	Images []Image `json:"images"`
}

// A Writer writes a backup. It holds one entry in memory.
type Writer struct {
	tar   *tar.Writer
	head  Head
	parts []Part
	seen  map[string]bool
	buf   []byte
	err   error // of the file: nothing can be written after it
}

// NewWriter begins a backup, and sets the format in its head.
func NewWriter(w io.Writer, head Head) (*Writer, error) {
	head.Format = Format
	head.Time = head.Time.UTC().Truncate(time.Second)
	x := &Writer{tar: tar.NewWriter(w), head: head, seen: make(map[string]bool), buf: make([]byte, 0, chunk)}
	return x, x.json(headEntry, head)
}

// Part writes a part, with what fill writes. An error of fill's that is not the file's own leaves
// the part out, where leave returns a reason, and ends the backup else; leave may be nil.
func (x *Writer) Part(name string, fill func(io.Writer) error, leave func(error) string) error {
	if x.err != nil {
		return x.err
	}
	if !partName.MatchString(name) || x.seen[name] || len(x.parts) == maxParts {
		return fmt.Errorf("a backup cannot have the part %q, or not once more", name)
	}
	x.seen[name] = true
	p := &part{x: x, name: name, sum: sha256.New()}
	err := fill(p)
	if err == nil || x.err == nil {
		if flushed := p.flush(); flushed != nil {
			err = flushed
		}
	}
	told := Part{Name: name, Size: p.size, SHA256: hex.EncodeToString(p.sum.Sum(nil))}
	if err != nil && x.err == nil && leave != nil {
		told.LeftOut = leave(err)
	}
	if err != nil && told.LeftOut == "" {
		return err
	}
	x.parts = append(x.parts, told)
	return nil
}

// LeftOut returns the parts that are not to be restored.
func (x *Writer) LeftOut() []Part {
	var out []Part
	for _, p := range x.parts {
		if p.LeftOut != "" {
			out = append(out, p)
		}
	}
	return out
}

// Close ends the backup with its manifest.
func (x *Writer) Close(images []Image) error {
	if x.err != nil {
		return x.err
	}
	if err := x.json(manifestEntry, Manifest{Head: x.head, Parts: x.parts, Images: images}); err != nil {
		return err
	}
	return x.tar.Close()
}

func (x *Writer) json(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return x.entry(name, b)
}

func (x *Writer) entry(name string, b []byte) error {
	if x.err != nil {
		return x.err
	}
	x.err = x.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(b)), ModTime: x.head.Time, Format: tar.FormatUSTAR,
	})
	if x.err == nil {
		_, x.err = x.tar.Write(b)
	}
	if x.err == nil {
		x.err = x.tar.Flush()
	}
	return x.err
}

// part is the part that is being written.
type part struct {
	x      *Writer
	name   string
	chunks int
	size   int64
	sum    interface {
		io.Writer
		Sum([]byte) []byte
	}
}

func (p *part) Write(b []byte) (int, error) {
	done := 0
	for len(b) > 0 {
		n := min(len(b), chunk-len(p.x.buf))
		p.x.buf = append(p.x.buf, b[:n]...)
		b, done = b[n:], done+n
		if len(p.x.buf) == chunk {
			if err := p.flush(); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// flush writes an entry of what is buffered. A part has one at least.
func (p *part) flush() error {
	b := p.x.buf
	p.x.buf = p.x.buf[:0]
	if len(b) == 0 && p.chunks > 0 {
		return nil
	}
	if p.chunks > 99_999_999 {
		return errors.New("a part of a backup has more than 95 TiB")
	}
	_, _ = p.sum.Write(b) // never fails, see hash.Hash
	p.size += int64(len(b))
	err := p.x.entry(chunkName(p.name, p.chunks), b)
	p.chunks++
	return err
}

func chunkName(part string, n int) string { return fmt.Sprintf("%s.%08d", part, n) }
