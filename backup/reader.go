// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"sandpit.dev/fault"
)

// tarHead is the size of an entry's head in the only form that a backup has.
const tarHead = 512

// Verify reads a backup to its end, and returns its manifest where the head, the order of the
// parts, their sizes and their sums are as that says. Errors: Invalid, and r's.
func Verify(r io.Reader) (*Manifest, error) {
	m, _, err := verify(r, nil)
	return m, err
}

// verify is Verify; if pos is not nil, it returns the position in r, and first holds the position
// of the first entry of each part.
func verify(r io.Reader, pos func() (int64, error)) (_ *Manifest, first map[string]int64, err error) {
	source := &sourceErr{r: r}
	x := &verifier{tar: tar.NewReader(source), pos: pos, first: make(map[string]int64)}
	m, err := x.read()
	switch {
	case source.err != nil:
		return nil, nil, source.err
	case err == nil:
		return m, x.first, nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return nil, nil, err
	}
	return nil, nil, fault.Wrap(fault.Invalid, err, "this is not a backup, or it was cut off or changed: %s", err).
		WithRemedy("take another backup")
}

// sourceErr remembers an error of the reader itself.
type sourceErr struct {
	r   io.Reader
	err error
}

func (s *sourceErr) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

type verifier struct {
	tar   *tar.Reader
	pos   func() (int64, error)
	first map[string]int64

	parts  []Part // that have ended
	now    Part
	chunks int // of now; 0: none has begun
	sum    hash.Hash
}

func (x *verifier) read() (*Manifest, error) {
	h, err := x.next()
	if err != nil {
		return nil, err
	}
	if h.Name != headEntry {
		return nil, fmt.Errorf("the first entry is %q", clip(h.Name))
	}
	var head Head
	if err := x.json(h, maxHead, &head); err != nil {
		return nil, err
	}
	if head.Format != Format {
		return nil, fault.New(fault.Invalid, "the backup has the format %d, and this version of sandpit reads %d", head.Format, Format).
			WithRemedy("restore it by the version that wrote it (%s)", clip(head.Version))
	}
	for {
		if h, err = x.next(); err != nil {
			return nil, err
		}
		if h.Name == manifestEntry {
			break
		}
		if err := x.chunk(h); err != nil {
			return nil, err
		}
	}
	x.end()
	var m Manifest
	if err := x.json(h, maxManifest, &m); err != nil {
		return nil, err
	}
	if m.Head != head {
		return nil, errors.New("the manifest is of another backup")
	}
	if len(m.Parts) != len(x.parts) {
		return nil, fmt.Errorf("it has %d parts, and its manifest %d", len(x.parts), len(m.Parts))
	}
	for n, p := range m.Parts {
		got := x.parts[n]
		if got.LeftOut = p.LeftOut; got != p {
			return nil, fmt.Errorf("the part %q is not as the manifest says", clip(got.Name))
		}
	}
	if _, err := x.tar.Next(); err != io.EOF {
		return nil, errors.New("there is more after its manifest")
	}
	return &m, nil
}

// next reads the head of an entry, which is a plain file.
func (x *verifier) next() (*tar.Header, error) {
	h, err := x.tar.Next()
	if err == io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if h.Typeflag != tar.TypeReg || len(h.PAXRecords) > 0 {
		return nil, fmt.Errorf("the entry %q is not a plain file", clip(h.Name))
	}
	return h, nil
}

// chunk reads an entry of a part.
func (x *verifier) chunk(h *tar.Header) error {
	if x.chunks == 0 || h.Name != chunkName(x.now.Name, x.chunks) {
		x.end()
		name, ok := cutChunk(h.Name)
		if !ok {
			return fmt.Errorf("the entry %q is not the beginning of a part", clip(h.Name))
		}
		if _, again := x.first[name]; again {
			return fmt.Errorf("the part %q is there twice", name)
		}
		if len(x.parts) == maxParts {
			return errors.New("it has too many parts")
		}
		x.first[name] = 0
		if x.pos != nil {
			at, err := x.pos()
			if err != nil {
				return err
			}
			x.first[name] = at - tarHead
		}
		x.now, x.sum = Part{Name: name}, sha256.New()
	}
	if h.Size > chunk {
		return fmt.Errorf("the entry %q is too large", clip(h.Name))
	}
	n, err := io.Copy(x.sum, x.tar)
	if err != nil {
		return err
	}
	x.now.Size += n
	x.chunks++
	return nil
}

// end ends the part that is being read.
func (x *verifier) end() {
	if x.chunks > 0 {
		x.now.SHA256 = hex.EncodeToString(x.sum.Sum(nil))
		x.parts = append(x.parts, x.now)
		x.chunks = 0
	}
}

// cutChunk returns the name of the part whose first entry has a name.
func cutChunk(entry string) (string, bool) {
	const suffix = ".00000000"
	if len(entry) <= len(suffix) || entry[len(entry)-len(suffix):] != suffix {
		return "", false
	}
	name := entry[:len(entry)-len(suffix)]
	return name, partName.MatchString(name)
}

func (x *verifier) json(h *tar.Header, most int64, v any) error {
	if h.Size > most {
		return fmt.Errorf("its %s is too large", h.Name)
	}
	b, err := io.ReadAll(x.tar)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("its %s cannot be read: %w", h.Name, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("its %s holds more than one value", h.Name)
	}
	return nil
}

func clip(s string) string { return s[:min(len(s), 100)] }

// A File is a backup that was verified, open for reading.
type File struct {
	Manifest *Manifest
	file     *os.File
	first    map[string]int64
	parts    map[string]Part // that are to be restored
}

// Open verifies the backup in a file, which it does not close; it calls see with its progress.
func Open(f *os.File, see func(done int64)) (*File, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the backup is not a file that can be read twice").WithRemedy("save it in a file first")
	}
	m, first, err := verify(&seen{f, see, 0}, func() (int64, error) { return f.Seek(0, io.SeekCurrent) })
	if err != nil {
		return nil, err
	}
	parts := make(map[string]Part, len(m.Parts))
	for _, p := range m.Parts {
		if p.LeftOut == "" {
			parts[p.Name] = p
		}
	}
	return &File{m, f, first, parts}, nil
}

// seen reports the progress of reading.
type seen struct {
	r    io.Reader
	see  func(int64)
	done int64
}

func (s *seen) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.done += int64(n)
	if s.see != nil {
		s.see(s.done)
	}
	return n, err
}

// Size returns the size of a part that is to be restored, and whether there is one.
func (f *File) Size(name string) (int64, bool) {
	p, ok := f.parts[name]
	return p.Size, ok
}

// Part reads a part by name. It ends with io.EOF only after exactly what was verified: the file
// may have been changed since.
func (f *File) Part(name string) (io.Reader, error) {
	part, ok := f.parts[name]
	if !ok {
		return nil, fault.New(fault.Invalid, "the backup has no %s, which its records tell of", name).WithRemedy("take another backup")
	}
	info, err := f.file.Stat()
	if err != nil {
		return nil, err
	}
	from := f.first[name]
	return &partReader{
		part: part, sum: sha256.New(),
		tar: tar.NewReader(io.NewSectionReader(f.file, from, info.Size()-from)),
	}, nil
}

type partReader struct {
	part   Part
	tar    *tar.Reader
	chunks int
	size   int64
	sum    hash.Hash
}

func (p *partReader) Read(b []byte) (int, error) {
	for {
		if p.size == p.part.Size {
			if hex.EncodeToString(p.sum.Sum(nil)) != p.part.SHA256 {
				return 0, p.changed()
			}
			return 0, io.EOF
		}
		if p.chunks > 0 {
			n, err := p.tar.Read(b[:min(int64(len(b)), p.part.Size-p.size)])
			_, _ = p.sum.Write(b[:n]) // never fails, see hash.Hash
			if p.size += int64(n); n > 0 || len(b) == 0 {
				return n, nil
			}
			if err != nil && err != io.EOF {
				return 0, p.changed()
			}
		}
		h, err := p.tar.Next()
		if err != nil || h.Name != chunkName(p.part.Name, p.chunks) {
			return 0, p.changed()
		}
		p.chunks++
	}
}

func (p *partReader) changed() error {
	return fault.New(fault.Invalid, "the part %s of the backup is not what it was when it was checked", p.part.Name).
		WithRemedy("keep the file as it is, and restore it again")
}
