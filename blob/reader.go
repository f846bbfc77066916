// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"
	"errors"
	"io"
)

// Reader reads from another until a context ends, and keeps that one's error, so that a Put can
// tell a source that failed from a store that did.
type Reader struct {
	ctx context.Context
	r   io.Reader
	err error
}

// NewReader returns a Reader of r that ends with ctx.
func NewReader(ctx context.Context, r io.Reader) *Reader { return &Reader{ctx: ctx, r: r} }

func (r *Reader) Read(p []byte) (int, error) {
	if r.err = r.ctx.Err(); r.err != nil {
		return 0, r.err
	}
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// Err returns the error that reading ended with; nil at the end of what there was.
func (r *Reader) Err() error { return r.err }
