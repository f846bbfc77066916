// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"

	"sandpit.dev/image"
)

// Images is what the engine needs of the images; *image.Store has it. It is
// safe for concurrent use.
type Images interface {
	// Resolve returns the catalogue's entry for a caller's spelling, without looking
	// at the disk. The empty name is the default image.
	Resolve(name string) (image.Entry, error)
	// Ensure returns the image, and builds it if it is missing. The build goes on
	// when ctx ends.
	Ensure(ctx context.Context, name string) (image.Image, error)
	// Find returns the image if it is built, and else fault.NotFound.
	Find(ctx context.Context, name string) (image.Image, error)
	// FindDigest returns exactly the image that a sandbox was made from.
	FindDigest(name, digest string) (image.Image, error)
	List(ctx context.Context) ([]image.Status, error)
}
