// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"

	"sandpit.dev/image"
)

// Copies are of images elsewhere, by their digests: what an Engine has been given of them, say.
type Copies interface {
	// RemoveImage removes the copy of an image that was deleted, if there is one.
	RemoveImage(ctx context.Context, digest string)
}

// remove removes builds that were withdrawn, and then their copies.
func (k *Keeper) remove(ctx context.Context, w *image.Withdrawal) (int64, error) {
	freed, err := w.Remove()
	if err == nil {
		for _, of := range k.copies {
			for _, digest := range digestsOf(w.Builds()) {
				of.RemoveImage(ctx, digest)
			}
		}
	}
	return freed, err
}
