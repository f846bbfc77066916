// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"net/http"
	"slices"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/image"
)

func (a *API) listImages(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (v1.ImageList, error) {
	images, err := a.Images.Images(ctx, c.Caller)
	if err != nil {
		return v1.ImageList{}, err
	}
	out := v1.ImageList{Items: make([]v1.Image, 0, len(images))}
	names := make([]string, 0, len(images))
	for _, s := range images {
		out.Items = append(out.Items, ImageOf(s))
		names = append(names, s.Name)
	}
	if a.Keeper == nil {
		return out, nil
	}
	counts, err := a.Keeper.Counts(ctx, c.Caller, names)
	if err != nil {
		return v1.ImageList{}, err
	}
	for i := range out.Items {
		out.Items[i].Sandboxes = new(counts[out.Items[i].Name])
	}
	return out, nil
}

type buildImage struct {
	Name string `path:"name" doc:"the image's name, or another spelling of it"`
	Wait *int   `query:"wait_seconds" doc:"how long to wait for its end, 0 to 3600; default 0"`
	Body v1.BuildImage
}

// shortBuild is what an answer waits for at least, so that a build that fails at
// once, or has nothing to do, says so.
const shortBuild = 100 * time.Millisecond

// buildImage waits a while for a build, which goes on when its caller leaves.
func (a *API) buildImage(ctx context.Context, c *httpapi.Call, in *buildImage) (v1.Image, error) {
	build := a.Images.BuildImage
	if in.Body.Rebuild {
		k, err := Kept(a.Keeper)
		if err != nil {
			return v1.Image{}, err
		}
		build = k.Rebuild
	}
	return a.awaitImage(ctx, c, in.Wait, func(ctx context.Context) (image.Status, error) { return build(ctx, c.Caller, in.Name) },
		func(s image.Status) bool {
			return s.Name == in.Name || slices.Contains(s.Aliases, in.Name) || s.Default && in.Name == "default"
		})
}

// awaitImage returns the image that do makes, or, where that takes longer than seconds, the first in
// the list that is it, with 202. Where none is any more it has ended, and do says how.
func (a *API) awaitImage(ctx context.Context, c *httpapi.Call, seconds *int, do func(context.Context) (image.Status, error), is func(image.Status) bool) (v1.Image, error) {
	wait := shortBuild
	if seconds != nil {
		if *seconds < 0 || *seconds > 3600 {
			return v1.Image{}, fault.InvalidField("wait_seconds", "%d is outside 0 to 3600", *seconds)
		}
		wait = max(wait, time.Duration(*seconds)*time.Second)
	}
	ctx, done := c.Bound(ctx)
	defer done()
	wctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s, err := do(wctx)
	if err != nil && ctx.Err() == nil && wctx.Err() != nil && fault.Is(err, fault.Timeout) {
		images, err := a.Images.Images(ctx, c.Caller)
		if err != nil {
			return v1.Image{}, err
		}
		if at := slices.IndexFunc(images, is); at >= 0 {
			c.Status = http.StatusAccepted
			return ImageOf(images[at]), nil
		}
		if s, err = do(ctx); err != nil {
			return v1.Image{}, httpapi.Cause(ctx, err)
		}
		return ImageOf(s), nil
	}
	if err != nil {
		return v1.Image{}, httpapi.Cause(ctx, err)
	}
	return ImageOf(s), nil
}

// ImageOf returns an image as clients see it.
func ImageOf(s image.Status) v1.Image {
	out := v1.Image{
		Name: s.Name, Description: s.Title, Aliases: append([]string{}, s.Aliases...), AliasNotes: s.Notes(), Default: s.Default, Allowed: s.Allowed, Status: string(s.State),
		Digest: s.Image.Digest, Versions: shape.MapOrEmpty(s.Image.Versions), SizeBytes: s.Image.SizeBytes, BuiltAt: shape.TimeOrNull(s.Image.Created), Start: s.Start, Config: configOf(s.Image),
	}
	switch s.State {
	case image.Building:
		out.Phase, out.Text, out.Progress = s.Stage, s.Text, new(s.Progress)
		for _, l := range s.Layers {
			out.Pulling = append(out.Pulling, v1.PulledLayer{Digest: l.Digest, DoneBytes: l.Done, SizeBytes: l.Size, Status: string(l.State)})
		}
	default:
		if s.Err != nil {
			out.Phase, out.Output = s.Stage, s.Output
			out.Error = fault.As(s.Err).Message
		}
	}
	return out
}
