// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"math"
	"strconv"
)

// sparseRecord is the size of a file with holes, in an archive of an agent's: the entry holds each part that is none, after its offset and its
// length in 8 bytes each, big-endian.
const sparseRecord = "SANDPIT.sparse"

const partHead = 16

// parts reads what a file holds that is no hole.
type parts struct {
	content io.Reader
	size    int64 // of the file
	left    int64 // of the entry
	last    int64 // where the part before ended
}

// partsOf returns those of an entry; nil: it has no record of holes.
func partsOf(h *tar.Header, content io.Reader) (*parts, error) {
	record, ok := h.PAXRecords[sparseRecord]
	if !ok {
		return nil, nil
	}
	size, err := strconv.ParseInt(record, 10, 64)
	if err != nil || size < 0 {
		return nil, errors.New("it has a file with holes and no size")
	}
	return &parts{content: content, size: size, left: h.Size}, nil
}

// next returns where the next part is; io.EOF: there is none.
func (p *parts) next() (at, length int64, err error) {
	if p.left == 0 {
		return 0, 0, io.EOF
	}
	var head [partHead]byte
	if _, err := io.ReadFull(p.content, head[:]); err != nil {
		return 0, 0, err
	}
	p.left -= partHead
	from, n := binary.BigEndian.Uint64(head[:8]), binary.BigEndian.Uint64(head[8:])
	if from > math.MaxInt64 || n > math.MaxInt64 || int64(from) < p.last || int64(n) > p.left || int64(n) > p.size-int64(from) { //nolint:gosec // as asked before
		return 0, 0, errors.New("it has a file whose parts do not fit together")
	}
	at, length = int64(from), int64(n) //nolint:gosec // as above
	p.left -= length
	p.last = at + length
	return at, length, nil
}

// plain returns the size of a file, and what reads it with its holes as zeros.
func plain(h *tar.Header, content io.Reader) (int64, io.Reader, error) {
	p, err := partsOf(h, content)
	if err != nil || p == nil {
		return h.Size, content, err
	}
	return p.size, &filled{p: p}, nil
}

// filled reads a file with holes.
type filled struct {
	p         *parts
	pos       int64
	at, until int64 // the part that is read, or is next
	ended     bool
}

func (f *filled) Read(b []byte) (int, error) {
	if f.pos >= f.until && !f.ended {
		at, length, err := f.p.next()
		if err == io.EOF {
			f.ended, at, length, err = true, f.p.size, 0, nil
		}
		if err != nil {
			return 0, err
		}
		f.at, f.until = at, at+length
	}
	if f.pos < f.at {
		n := min(int64(len(b)), f.at-f.pos)
		clear(b[:n])
		f.pos += n
		return int(n), nil
	}
	if f.pos == f.p.size {
		return 0, io.EOF
	}
	n, err := f.p.content.Read(b[:min(int64(len(b)), f.until-f.pos)])
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
		size, err = p.size, p.sum(s)
	}
	s.flush(0)
	s.sum.Sum(sum[:0])
	return size, sum, err
}

func (p *parts) sum(s *blockSum) error {
	for {
		at, length, err := p.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		s.seek(at)
		if _, err := io.CopyN(s, p.content, length); err != nil {
			return err
		}
	}
}
