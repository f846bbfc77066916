// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"sync"

	"sandpit.dev/access"
)

// Versions says what is inside images. It remembers that by the image's digest, for which it never
// changes, so that a create does not ask for it. It is safe for concurrent use.
type Versions struct {
	images Images

	mu sync.Mutex
	m  map[string]map[string]string
}

// maxVersions bounds what is remembered; a server has a handful of images.
const maxVersions = 256

// Of returns the versions of the tools inside the image with a digest, by their names, or nil where they
// are not known: of an old image that is gone, or for a token that may not see images.
func (v *Versions) Of(ctx context.Context, c access.Caller, digest string) map[string]string {
	v.mu.Lock()
	known, ok := v.m[digest]
	v.mu.Unlock()
	if ok {
		return known
	}
	images, err := v.images.Images(ctx, c)
	if err != nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.m == nil || len(v.m) >= maxVersions {
		v.m = make(map[string]map[string]string)
	}
	for _, i := range images {
		if i.Image.Digest != "" {
			v.m[i.Image.Digest] = i.Image.Versions
		}
	}
	if _, ok := v.m[digest]; !ok {
		v.m[digest] = nil
	}
	return v.m[digest]
}
