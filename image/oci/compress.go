// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory that reading a layer in zstd takes: what its format asks every reader to have.
const maxWindow = 8 << 20

// expand returns the bytes of a layer, whichever way it is compressed: its media type may be wrong, what it
// begins with is not.
func expand(r io.Reader) (io.ReadCloser, error) {
	from := &source{r: r}
	b := bufio.NewReaderSize(from, 64<<10)
	head, err := b.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, refused("a layer that begins as gzip does cannot be read: %v", err)
		}
		return &expanded{z, from}, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}), len(head) == 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:], []byte{0x2a, 0x4d, 0x18}):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, refused("a layer that begins as zstd does cannot be read: %v", err)
		}
		return &expanded{z.IOReadCloser(), from}, nil
	}
	return io.NopCloser(b), nil
}

// source remembers how what is expanded ended.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

// expanded tells an archive that is at fault from one that broke off on its way.
type expanded struct {
	io.ReadCloser
	from *source
}

func (e *expanded) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	switch {
	case err == nil || err == io.EOF:
	case e.from.err != nil && e.from.err != io.EOF:
		err = e.from.err
	default:
		err = refused("a layer cannot be expanded to its end: %v", err)
	}
	return n, err
}

// hashed computes the digest of what is read of it.
type hashed struct {
	r io.Reader
	h hash.Hash
	n int64
}

func newHashed(r io.Reader) *hashed { return &hashed{r: r, h: sha256.New()} }

func (h *hashed) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.h.Write(p[:n])
	h.n += int64(n)
	return n, err
}

func (h *hashed) digest() string { return digestPrefix + hex.EncodeToString(h.h.Sum(nil)) }

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return digestPrefix + hex.EncodeToString(sum[:])
}
