// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"

	"sandpit.dev/image"
)

// Forget removes an image of others without a name that nobody uses, by its digest. Any other one stays, and is no error.
func (k *Keeper) Forget(ctx context.Context, digest string) error {
	img, ok := k.store.Other(digest)
	if !ok || img.Other == nil || len(img.Other.References) > 0 {
		return nil
	}
	_, _, err := k.collect(ctx, digest, image.Build{Image: img}, false)
	return err
}
