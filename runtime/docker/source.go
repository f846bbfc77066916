// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"io"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

var _ runtime.ImageSource = (*Driver)(nil)

// SaveImage gives an image of the Engine's, which pulls it if it lacks it. Those that a server put there
// are that server's.
func (d *Driver) SaveImage(ctx context.Context, reference string) (io.ReadCloser, error) {
	shown := sandbox.Clip(reference, 200)
	img, err := d.engine.InspectImage(ctx, reference)
	if fault.Is(err, fault.NotFound) {
		d.log.Info("the Engine pulls an image", "image", shown)
		if err := d.engine.PullImage(ctx, reference, nil); err != nil {
			return nil, d.notPulled(ctx, shown, err)
		}
		img, err = d.engine.InspectImage(ctx, reference)
	}
	if err != nil {
		return nil, err
	}
	if ours(img) {
		return nil, fault.New(fault.NotFound, "the Engine's image %q is what a server put there", shown).WithRemedy("name the image that it was made of: sandpit image ls")
	}
	return d.engine.SaveImage(ctx, reference)
}

func ours(img engineapi.Image) bool {
	for _, label := range []string{labelImage, labelServer} {
		if img.Config.Labels[label] != "" {
			return true
		}
	}
	return false
}

// notPulled says why an Engine has no such image.
func (d *Driver) notPulled(ctx context.Context, shown string, err error) error {
	switch {
	case ctx.Err() != nil:
		return err
	case fault.Is(err, fault.NotFound) || fault.Is(err, fault.Denied):
		return fault.Wrap(fault.NotFound, err, "the image %q is neither here nor on the Engine at %s, and its registry does not give it: %s", shown, d.engine.Host(), fault.As(err).Message).
			WithRemedy("see that it is written right; log the Engine in to its registry if that wants it, or load it there: docker load")
	case fault.Is(err, fault.Unavailable):
		return fault.Wrap(fault.Unavailable, err, "the Engine at %s cannot pull the image %q: its registry does not answer, or not as one", d.engine.Host(), shown).
			WithRemedy("try docker pull there, which says more; or load the image: docker load, or sandpit image import")
	}
	return err
}
