// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package chunks

import (
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
)

// ErrLeft is that a stream that was not written left chunks, which Sweep removes.
var ErrLeft = errors.New("parts of it are left in the store")

// undoPatience bounds the removal of what was written of a stream before that failed.
const undoPatience = 2 * time.Minute

// Write keeps what write writes. Its chunks are on stable storage and counted when it returns, and no [Index] says so yet. After an error none of them is
// counted; the error is ErrLeft, too, where some could not be removed.
func (s *Store) Write(ctx context.Context, write func(io.Writer) error) (Index, error) {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	w := &writer{s: s, ctx: gctx, keep: g, buf: make([]byte, 0, 2*maxSize)}
	err := write(w)
	if err == nil {
		err = w.flush()
	}
	if failed := g.Wait(); failed != nil { // it is why write failed, then
		err = failed
	}
	if err == nil {
		err = ctx.Err()
	}
	x := make(Index, 0, len(w.chunks))
	var unsure []Sum
	for _, c := range w.chunks {
		switch {
		case c.Size > 0: // it was kept
			x = append(x, *c)
		case c.Sum != Sum{}:
			unsure = append(unsure, c.Sum)
		}
	}
	if err == nil {
		return x, nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoPatience)
	defer cancel()
	left := s.Drop(undo, x)
	for _, sum := range unsure {
		left = errors.Join(left, s.forget(undo, sum))
	}
	if left != nil {
		err = errors.Join(err, ErrLeft, left)
	}
	return nil, err
}

// writer cuts what is written to it.
type writer struct {
	s      *Store
	ctx    context.Context
	keep   *errgroup.Group
	buf    []byte // what is not cut yet
	chunks []*Chunk
}

func (w *writer) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		n := min(len(p), cap(w.buf)-len(w.buf))
		w.buf = append(w.buf, p[:n]...)
		p, written = p[n:], written+n
		if len(w.buf) < maxSize {
			continue
		}
		n = cut(w.buf)
		w.chunk(w.buf[:n])
		w.buf = w.buf[:copy(w.buf, w.buf[n:])]
		if err := w.ctx.Err(); err != nil {
			return written, err
		}
	}
	return written, nil
}

// chunk has one be kept, and waits while as many are as may be.
func (w *writer) chunk(b []byte) {
	data, c := append([]byte(nil), b...), new(Chunk)
	w.chunks = append(w.chunks, c)
	w.keep.Go(func() (err error) {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		*c, err = w.s.keep(w.ctx, data)
		return err
	})
}

// flush has the rest be kept.
func (w *writer) flush() error {
	for len(w.buf) > 0 {
		n := cut(w.buf)
		if n == 0 {
			n = len(w.buf)
		}
		w.chunk(w.buf[:n])
		w.buf = w.buf[n:]
	}
	return w.ctx.Err()
}
