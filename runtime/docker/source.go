// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"io"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/image/oci"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

var _ runtime.ImageSource = (*Driver)(nil)

// SaveImage gives an image of the Engine's, which pulls it if it lacks it. Those that a server put there
// are that server's.
func (d *Driver) SaveImage(ctx context.Context, reference string, tell func(runtime.ImageProgress)) (io.ReadCloser, error) {
	shown := sandbox.Clip(reference, 200)
	if _, err := oci.ParseReference(reference); err != nil {
		return nil, err
	}
	img, err := d.engine.InspectImage(ctx, reference)
	if fault.Is(err, fault.NotFound) {
		d.log.Info("the Engine pulls an image", "image", shown)
		if err := d.engine.PullImage(ctx, reference, layersTold(tell)); err != nil {
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
	case isForAnother(err):
		return fault.Wrap(fault.Unsupported, err, "the registry has no image %q for the processor of the Engine at %s", shown, d.engine.Host()).
			WithRemedy("name one that was made for it, or build it for it and push that")
	case fault.Is(err, fault.NotFound) || fault.Is(err, fault.Denied) || wantsLogin(err):
		return fault.Wrap(fault.NotFound, err, "the image %q is neither here nor on the Engine at %s, and its registry does not give it: %s", shown, d.engine.Host(), fault.As(err).Message).
			WithRemedy("see that it is written right; log the Engine in to its registry if that wants it, or load it there: docker load")
	case isUnknown(err):
		return fault.Wrap(fault.NotFound, err, "the image %q is neither here nor on the Engine at %s, and its registry does not give it: it has none of that name", shown, d.engine.Host()).
			WithRemedy("see that it is written right, or load it there: docker load")
	case fault.Is(err, fault.Unavailable):
		return fault.Wrap(fault.Unavailable, err, "the Engine at %s cannot pull the image %q: its registry does not answer, or not as one", d.engine.Host(), shown).
			WithRemedy("try docker pull there, which says more; or load the image: docker load, or sandpit image import")
	}
	return err
}

// wantsLogin reports whether a registry gives an image to those alone that it knows.
func wantsLogin(err error) bool {
	return strings.Contains(err.Error(), "no basic auth credentials") || strings.Contains(err.Error(), "unauthorized") || strings.Contains(err.Error(), "authentication required")
}

// isForAnother reports whether an Engine found the image's name in its registry, and none of its images is for its processor.
func isForAnother(err error) bool { return strings.Contains(err.Error(), "no matching manifest") }

// isUnknown reports whether a registry says that it has no such image. From Docker 26 on, where it does not say of its words that they are JSON,
// the Engine only passes them on.
func isUnknown(err error) bool {
	return strings.Contains(err.Error(), `"NAME_UNKNOWN"`) || strings.Contains(err.Error(), `"MANIFEST_UNKNOWN"`)
}
