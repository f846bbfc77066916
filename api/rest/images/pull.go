// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"net/http"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

type pullImage struct {
	Body v1.PullImage
	Wait *int `query:"wait_seconds" doc:"how long to wait for its end, 0 to 3600; default 0"`
}

// pullImage waits a while for a pull, which goes on when its caller leaves.
func (a *API) pullImage(ctx context.Context, c *httpapi.Call, in *pullImage) (v1.Image, error) {
	return a.awaitImage(ctx, c, in.Wait, func(ctx context.Context) (image.Status, error) {
		return a.Images.PullImage(ctx, c.Caller, in.Body.Reference)
	},
		func(s image.Status) bool {
			return s.State == image.Building && image.SameReference(s.Name, in.Body.Reference)
		})
}

type importImages struct {
	Name *string `query:"name" doc:"a reference for the image, as debian:12-slim; left out: the archive's own"`
}

// importImages makes images of the raw body as it comes.
func (a *API) importImages(ctx context.Context, c *httpapi.Call, in *importImages) (v1.ImageList, error) {
	if enc := c.R.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return v1.ImageList{}, guard.WithStatus(http.StatusUnsupportedMediaType,
			fault.New(fault.Malformed, "the body is encoded as %q; an archive may be compressed, its transport not", sandbox.Clip(enc, 40)).
				WithRemedy("send it without the header Content-Encoding"))
	}
	ctx, done := c.Bound(ctx)
	defer done()
	ctx, stop := guard.WhilePresent(ctx) // what was sent may be work for long
	defer stop()
	made, err := a.Images.ImportImages(ctx, c.Caller, http.MaxBytesReader(nil, c.R.Body, a.MaxFile), httpapi.Given(in.Name))
	if err != nil {
		if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return v1.ImageList{}, guard.TooLarge(tooBig.Limit)
		}
		return v1.ImageList{}, httpapi.Cause(ctx, err)
	}
	out := v1.ImageList{Items: make([]v1.Image, 0, len(made))}
	for _, s := range made {
		out.Items = append(out.Items, ImageOf(s))
	}
	return out, nil
}

// configOf is what an imported image's maker wrote; nil for one of the catalogue.
func configOf(i image.Image) *v1.ImageConfig {
	o := i.Other
	if o == nil {
		return nil
	}
	out := &v1.ImageConfig{
		Architecture: o.Architecture, ImageID: o.ConfigDigest, User: o.Config.User, WorkingDir: o.Config.WorkingDir,
		Entrypoint: o.Config.Entrypoint, Cmd: o.Config.Cmd, Env: i.Env, Labels: o.Config.Labels, Ports: o.Config.Ports,
		Layers: make([]string, 0, len(o.Layers)), LeftOut: o.Devices, Foreign: o.Foreign,
	}
	for _, l := range o.Layers {
		out.Layers = append(out.Layers, l.Digest)
	}
	return out
}
