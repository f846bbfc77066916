// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"

	"sandpit.dev/engine/events"
	"sandpit.dev/image"
)

// builtImages returns what lists the images that are on disk, for their events.
func builtImages(s *image.Store) func(context.Context) ([]events.BuiltImage, error) {
	return func(ctx context.Context) ([]events.BuiltImage, error) {
		all, err := s.List(ctx)
		if err != nil {
			return nil, err
		}
		var out []events.BuiltImage
		for i := range all {
			if digest := all[i].Image.Digest; digest != "" {
				out = append(out, events.BuiltImage{Name: all[i].Name, Digest: digest, Record: &all[i]})
			}
		}
		return out, nil
	}
}
