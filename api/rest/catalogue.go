// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"slices"
	"time"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/image"
)

func (a *API) listImages(ctx context.Context, c *call, _ *httpapi.NoInput) (v1.ImageList, error) {
	images, err := a.Images.Images(ctx, c.Caller)
	if err != nil {
		return v1.ImageList{}, err
	}
	out := v1.ImageList{Items: make([]v1.Image, 0, len(images))}
	names := make([]string, 0, len(images))
	for _, s := range images {
		out.Items = append(out.Items, imageOf(s))
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
const shortBuild = 250 * time.Millisecond

// buildImage waits a while for a build that goes on whoever waits.
func (a *API) buildImage(ctx context.Context, c *call, in *buildImage) (v1.Image, error) {
	wait := shortBuild
	if in.Wait != nil {
		if *in.Wait < 0 || *in.Wait > 3600 {
			return v1.Image{}, fault.InvalidField("wait_seconds", "%d is outside 0 to 3600", *in.Wait)
		}
		wait = max(wait, time.Duration(*in.Wait)*time.Second)
	}
	ctx, done := c.Bound(ctx)
	defer done()
	wctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	build := a.Images.BuildImage
	if in.Body.Rebuild {
		k, err := a.keeper()
		if err != nil {
			return v1.Image{}, err
		}
		build = k.Rebuild
	}
	s, err := build(wctx, c.Caller, in.Name)
	if err == nil {
		return imageOf(s), nil
	}
	if ctx.Err() != nil || wctx.Err() == nil || !fault.Is(err, fault.Timeout) {
		return v1.Image{}, httpapi.Cause(ctx, err)
	}
	images, lerr := a.Images.Images(ctx, c.Caller)
	if lerr != nil {
		return v1.Image{}, lerr
	}
	for _, s := range images {
		if s.Name == in.Name || slices.Contains(s.Aliases, in.Name) {
			c.Status = http.StatusAccepted
			return imageOf(s), nil
		}
	}
	return v1.Image{}, err
}

func imageOf(s image.Status) v1.Image {
	out := v1.Image{
		Name: s.Name, Description: s.Title, Aliases: append([]string{}, s.Aliases...), AliasNotes: s.Notes(), Default: s.Default, Allowed: s.Allowed, Status: string(s.State),
		Digest: s.Image.Digest, Versions: mapOrEmpty(s.Image.Versions), SizeBytes: s.Image.SizeBytes, BuiltAt: timeOrNull(s.Image.Created), Config: configOf(s.Image),
	}
	switch s.State {
	case image.Building:
		out.Phase, out.Text, out.Progress = s.Stage, s.Text, new(s.Progress)
	default:
		if s.Err != nil {
			out.Phase, out.Output = s.Stage, s.Output
			out.Error = fault.As(s.Err).Message
		}
	}
	return out
}
