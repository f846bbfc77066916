// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package chunks

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"

	"sandpit.dev/fault"
)

// Reader reads a stream. It is for one goroutine.
type Reader struct {
	s     *Store
	ctx   context.Context
	stop  context.CancelFunc
	left  Index          // those that are not begun
	ahead []<-chan chunk // those that are
	data  []byte
	err   error
}

// chunk is what came of reading one.
type chunk struct {
	data []byte
	err  error
}

// Open returns a stream from its beginning, which nobody drops before it is closed. It ends with ctx.
func (s *Store) Open(ctx context.Context, x Index) *Reader {
	ctx, stop := context.WithCancel(ctx)
	return &Reader{s: s, ctx: ctx, stop: stop, left: x}
}

func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.data) == 0 {
		if r.err == nil {
			r.err = r.next()
		}
		if r.err != nil {
			return 0, r.err
		}
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}

// next waits for the next chunk, while those behind it are read, too.
func (r *Reader) next() error {
	for len(r.left) > 0 && len(r.ahead) < atOnce {
		c, to := r.left[0], make(chan chunk, 1)
		r.left, r.ahead = r.left[1:], append(r.ahead, to)
		go func() {
			data, err := r.s.read(r.ctx, c)
			to <- chunk{data, err}
		}()
	}
	if len(r.ahead) == 0 {
		return io.EOF
	}
	got := <-r.ahead[0]
	r.ahead, r.data = r.ahead[1:], got.data
	return got.err
}

// Close ends it, and waits for what is being read.
func (r *Reader) Close() error {
	r.stop()
	for _, c := range r.ahead {
		<-c
	}
	r.ahead, r.left, r.data, r.err = nil, nil, nil, errors.New("it is closed")
	return nil
}

// read returns the content of a chunk, which is what its sum says.
func (s *Store) read(ctx context.Context, c Chunk) ([]byte, error) {
	b, err := s.blobs.Open(ctx, c.Sum.name())
	if err != nil {
		return nil, s.lost(err)
	}
	packed, err := io.ReadAll(io.LimitReader(b, int64(c.Stored)+1))
	_ = b.Close()
	if err != nil {
		return nil, s.lost(err)
	}
	data, err := s.open.DecodeAll(packed, make([]byte, 0, min(c.Size, maxSize)))
	if err != nil || sha256.Sum256(data) != c.Sum {
		return nil, fault.New(fault.Internal, "a part of it, which the %s keeps as %s, is not what was kept there: its content has another checksum", s.blobs.Place(), c.Sum.name()).
			WithRemedy("delete it, and have the operator look at that disk or bucket")
	}
	return data, nil
}

// lost says of a chunk that is gone that it should be there.
func (s *Store) lost(err error) error {
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	return fault.Wrap(fault.Internal, err, "a part of it is lost: %s", fault.As(err).Message).WithRemedy("delete it, and have the operator look at what removes there what this server keeps")
}
