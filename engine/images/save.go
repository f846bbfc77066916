// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"io"

	"sandpit.dev/access"
	"sandpit.dev/image"
)

// Saving is an image as an OCI archive that is about to be written. Close is called once.
type Saving struct {
	Digest string // of the archive's manifest
	Size   int64  // of the archive
	ctx    context.Context
	from   *image.Saving
	leave  func()
}

// Save reads an image for an archive of it.
func (k *Keeper) Save(ctx context.Context, c access.Caller, name string) (*Saving, error) {
	ctx, leave, err := k.engine.Enter(ctx, c, access.ServerAdmin)
	if err != nil {
		return nil, err
	}
	from, err := k.store.Save(ctx, name)
	if err != nil {
		leave()
		return nil, err
	}
	return &Saving{Digest: from.Digest, Size: from.Size, ctx: ctx, from: from, leave: leave}, nil
}

// Write writes the archive.
func (s *Saving) Write(w io.Writer) error { return s.from.Write(s.ctx, w) }

// Close lets the image be deleted again.
func (s *Saving) Close() {
	s.from.End()
	s.leave()
}
