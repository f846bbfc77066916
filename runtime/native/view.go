// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"os"

	"sandpit.dev/fault"
	"sandpit.dev/linux/merged"
	"sandpit.dev/runtime"
)

var _ runtime.Viewer = (*Driver)(nil)

// View opens the layer, or the snapshot of one, upon the image. See [runtime.Viewer].
func (d *Driver) View(_ context.Context, img runtime.Image, at runtime.Point) (runtime.View, error) {
	image, err := os.Open(img.Root)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the image's root cannot be opened")
	}
	if at == (runtime.Point{}) {
		return merged.New(nil, image, true), nil
	}
	layer, err := d.layers.OpenTree(pointOf(at))
	if err != nil {
		_ = image.Close()
		return nil, err
	}
	return merged.New(layer, image, at.Instance == ""), nil
}
