// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"sandpit.dev/linux/sparse"
)

// partsOf returns the parts of an entry; nil if it has no record of holes.
func partsOf(h *tar.Header, content io.Reader) (*sparse.Parts, error) {
	p, err := sparse.Parse(h, content)
	return p, told(err)
}

// told returns err, as a sentence if it says what is wrong with an entry.
func told(err error) error {
	if wrong, ok := errors.AsType[sparse.FormatError](err); ok {
		return fmt.Errorf("it has a file that %w", wrong)
	}
	return err
}

// plain returns the size of a file, and what reads it with its holes as zeros.
func plain(h *tar.Header, content io.Reader) (int64, io.Reader, error) {
	p, err := partsOf(h, content)
	if err != nil || p == nil {
		return h.Size, content, err
	}
	return p.Size, &filled{p: p, content: content}, nil
}

// filled reads a file with holes.
type filled struct {
	p         *sparse.Parts
	content   io.Reader // what p reads
	pos       int64
	at, until int64 // the part that is read, or is next
	ended     bool
}

func (f *filled) Read(b []byte) (int, error) {
	if f.pos >= f.until && !f.ended {
		at, length, err := f.p.Next()
		if err == io.EOF {
			f.ended, at, length, err = true, f.p.Size, 0, nil
		}
		if err != nil {
			return 0, told(err)
		}
		f.at, f.until = at, at+length
	}
	if f.pos < f.at {
		n := min(int64(len(b)), f.at-f.pos)
		clear(b[:n])
		f.pos += n
		return int(n), nil
	}
	if f.pos == f.p.Size {
		return 0, io.EOF
	}
	n, err := f.content.Read(b[:min(int64(len(b)), f.until-f.pos)])
	f.pos += int64(n)
	if err == io.EOF && f.pos < f.until {
		err = io.ErrUnexpectedEOF
	} else if err == io.EOF {
		err = nil
	}
	return n, err
}

// sumBlock is what a sum is made of: a block of zeros counts as a hole.
const sumBlock = 4096

// blockSum sums a file by its blocks that are not all zero, so that it does not matter where its holes are told to be.
type blockSum struct {
	sum   hash.Hash
	block [sumBlock]byte
	at    int64 // of the block
	n     int   // bytes of it
}

func (s *blockSum) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 {
		n := copy(s.block[s.n:], p)
		s.n += n
		p = p[n:]
		if s.n == sumBlock {
			s.flush(s.at + sumBlock)
		}
	}
	return all, nil
}

// seek goes on behind a hole.
func (s *blockSum) seek(at int64) {
	if begin := at &^ (sumBlock - 1); begin != s.at {
		s.flush(begin)
	}
	s.n = int(at - s.at)
}

// flush ends a block, and begins the one at an offset.
func (s *blockSum) flush(next int64) {
	if s.block != [sumBlock]byte{} {
		var at [8]byte
		binary.BigEndian.PutUint64(at[:], uint64(s.at)) //nolint:gosec // an offset
		s.sum.Write(at[:])
		s.sum.Write(s.block[:])
		clear(s.block[:])
	}
	s.at, s.n = next, 0
}

// sumOf returns the size of a file, and a sum of what it holds.
func sumOf(h *tar.Header, content io.Reader) (size int64, sum [sha256.Size]byte, err error) {
	s := &blockSum{sum: sha256.New()}
	p, err := partsOf(h, content)
	if err != nil {
		return 0, sum, err
	}
	if p == nil {
		size, err = io.Copy(s, content)
	} else {
		size, err = p.Size, s.parts(p, content)
	}
	s.flush(0)
	s.sum.Sum(sum[:0])
	return size, sum, err
}

// parts sums the parts of a file.
func (s *blockSum) parts(p *sparse.Parts, content io.Reader) error {
	for {
		at, length, err := p.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return told(err)
		}
		s.seek(at)
		if _, err := io.CopyN(s, content, length); err != nil {
			return err
		}
	}
}
