// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"

	"sandpit.dev/fault"
)

const (
	// maxWindow bounds what unpacking keeps in memory.
	maxWindow = 8 << 20
	// slack is how many bytes more than twice those of the layer that was packed are unpacked: headers
	// may be written in more bytes than they had, by another version of ours.
	slack = 1 << 20
)

// Packed describes a disk that is packed. Its form is that of an archive, but for two things: zstd
// compresses it, and a file that the image has too is a name in it (see imageRecord).
type Packed struct {
	Digest      string // "sha256:" and 64 hex digits, of the packed bytes
	PackedBytes int64
	Bytes       int64 // of the layer that was packed
}

// Pack packs a layer, which the function writes, into w. root is the directory of the image's files;
// "": none. What w got before an error is of no use.
func Pack(ctx context.Context, w io.Writer, m Meta, root string, layer func(io.Writer) error) (Packed, error) {
	image, err := openImage(root)
	if err != nil {
		return Packed{}, err
	}
	defer image.close()
	out := &summing{w: w, sum: sha256.New()}
	z, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(maxWindow))
	if err != nil {
		return Packed{}, err
	}
	if err := m.write(z); err != nil {
		return Packed{}, err
	}
	from, to := io.Pipe()
	in := &summing{w: to}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = to.CloseWithError(layer(in))
	}()
	err = image.replace(ctx, tar.NewReader(from), tar.NewWriter(z))
	if err == nil {
		_, err = io.Copy(io.Discard, from) // to its end, and its error
	}
	_ = from.CloseWithError(err)
	<-done
	if err == nil {
		err = z.Close()
	}
	if errors.Is(err, tar.ErrFieldTooLong) || errors.Is(err, tar.ErrHeader) {
		err = fault.Wrap(fault.Unsupported, err, "the disk has a name or attributes that no archive can hold")
	}
	return Packed{out.digest(), out.n, in.n}, err
}

// Unpack reads a layer that was packed from r, of which nothing is trusted, and hands it to the function:
// to its end only if r had what want says, byte for byte. Else the function gets an error
// where the layer's end would be, and Unpack returns it: fault.State.
func Unpack(ctx context.Context, r io.Reader, want Packed, root string, layer func(Meta, io.Reader) error) error {
	image, err := openImage(root)
	if err != nil {
		return err
	}
	defer image.close()
	in := &checked{r: r, sum: sha256.New(), want: want}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(4*maxWindow))
	if err != nil {
		return err
	}
	defer z.Close()
	bound := &bounded{r: z, left: slack + 2*want.Bytes}
	meta, err := readMeta(bound)
	if err != nil {
		return in.explain(err)
	}
	from, to := io.Pipe()
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		out := tar.NewWriter(&limited{to, slack + 2*want.Bytes})
		failed = image.restore(ctx, tar.NewReader(bound), out)
		if failed == nil {
			failed = in.finish()
		}
		if failed == nil {
			failed = out.Close()
		}
		failed = in.explain(failed)
		_ = to.CloseWithError(failed)
	}()
	err = layer(meta, from)
	_ = from.CloseWithError(errStopped)
	<-done
	if failed != nil && !errors.Is(failed, errStopped) {
		return failed
	}
	return err
}

// errStopped is what the writer of a layer gets that nobody reads any more.
var errStopped = errors.New("the layer is read no further")

// summing is a writer that counts, and sums up where it has a hash.
type summing struct {
	w   io.Writer
	sum hash.Hash
	n   int64
}

func (s *summing) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.n += int64(n)
	if s.sum != nil {
		s.sum.Write(p[:n])
	}
	return n, err
}

func (s *summing) digest() string { return digestOf(s.sum) }

func digestOf(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }

// checked is a reader of packed bytes that tells whether they are those that were written.
type checked struct {
	r    io.Reader
	sum  hash.Hash
	n    int64
	want Packed
	err  error // of r
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.sum.Write(p[:n])
	if c.n > c.want.PackedBytes {
		return 0, c.other()
	}
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// finish reads to the end, and returns an error where the bytes are others.
func (c *checked) finish() error {
	if _, err := io.Copy(io.Discard, c); err != nil {
		return err
	}
	if c.n != c.want.PackedBytes || digestOf(c.sum) != c.want.Digest {
		return c.other()
	}
	return nil
}

// explain returns err, which reading ended with, or what it comes of: the error of the reader, or that
// the bytes are not those that were written, in which anything may be wrong.
func (c *checked) explain(err error) error {
	if err == nil || errors.Is(err, errStopped) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if c.err != nil {
		return c.err
	}
	if other := c.finish(); other != nil {
		return other
	}
	return err
}

func (c *checked) other() error {
	return fault.New(fault.State, "the archive is not what was written: it has other bytes than those of %s", c.want.Digest)
}

// limited is a writer that takes so many bytes.
type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, tooLarge()
	}
	return l.w.Write(p)
}

// Verify reads what was packed to its end, and returns an error where it is not what want says.
func Verify(ctx context.Context, r io.Reader, want Packed) error {
	in := &checked{r: r, sum: sha256.New(), want: want}
	if err := in.finish(); err != nil {
		return fmt.Errorf("read an archive back: %w", err)
	}
	return ctx.Err()
}
