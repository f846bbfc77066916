// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"

	"sandpit.dev/fault"
	"sandpit.dev/image/dockerfile"
)

// archiveIn returns the tar archive that a file of the context is, compressed or not; nil: it is another file.
func archiveIn(e *dockerfile.Entry) (io.Reader, error) {
	r, err := expanded(e)
	if err != nil || r == nil {
		return nil, err
	}
	if _, err := tar.NewReader(r).Next(); err != nil {
		return nil, nil // compressed, or nothing that is known: as ADD does it stays a file
	}
	return expanded(e)
}

// maxWindow bounds the memory that reading zstd takes: what its format asks every reader to have.
const maxWindow = 8 << 20

// expanded returns what is compressed in a file, the file itself if it is not; nil: it is no archive.
func expanded(e *dockerfile.Entry) (io.Reader, error) {
	in := bufio.NewReader(e.Open())
	head, _ := in.Peek(6) // a shorter file is none of them
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil
		}
		return z, nil
	case bytes.HasPrefix(head, []byte("BZh")):
		return bzip2.NewReader(in), nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, nil
		}
		return z.IOReadCloser(), nil
	case bytes.HasPrefix(head, []byte{0xfd, '7', 'z', 'X', 'Z', 0}):
		return nil, fault.New(fault.Unsupported, "%s is compressed by xz, which is not unpacked here", e.Name).WithRemedy("compress it by gzip or zstd, or COPY it and unpack it by RUN")
	}
	return in, nil
}
