// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/images"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	engineimages "sandpit.dev/engine/images"
)

// serverKeeper returns who administers images, for a caller who may do so for all projects.
func (a *API) serverKeeper(c *httpapi.Call) (service.Keeper, error) {
	if err := c.Caller.Require(access.ServerAdmin); err != nil {
		return nil, err
	}
	return images.Kept(a.Keeper)
}

type ofImage struct {
	ID string `path:"id" doc:"the image's name, or another spelling of it"`
}

// imagePool sums the pools of an image up: the MCP Gateway has one of each.
func (a *API) imagePool(ctx context.Context, c *httpapi.Call, in *ofImage) (v1.SandboxImagePool, error) {
	k, err := a.serverKeeper(c)
	if err != nil {
		return v1.SandboxImagePool{}, err
	}
	image, pools, err := k.Pools(ctx, c.Caller, in.ID)
	if err != nil {
		return v1.SandboxImagePool{}, err
	}
	out := v1.SandboxImagePool{ImageID: image, ImageName: image}
	for _, p := range pools {
		out.IdleCount += p.Images[image]
		if p.Recent {
			continue // its bounds are those of all images together
		}
		out.WarmPoolMin += p.Min
		out.WarmPoolMax += p.Max
		if out.Provider == "" {
			out.Provider = p.Runtime
		}
	}
	if out.Provider == "" {
		info, err := a.Server.Info(ctx, c.Caller)
		if err != nil {
			return v1.SandboxImagePool{}, err
		}
		out.Provider = info.Default
	}
	return out, nil
}

type deleteSandboxImage struct {
	ofImage
	Force *bool `query:"force" doc:"delete the sandboxes and snapshots that use it first"`
}

func (a *API) deleteSandboxImage(ctx context.Context, c *httpapi.Call, in *deleteSandboxImage) (v1.ImageDeletion, error) {
	k, err := a.serverKeeper(c)
	if err != nil {
		return v1.ImageDeletion{}, err
	}
	return images.Delete(ctx, c, k, engineimages.Deletion{Name: in.ID, Force: in.Force != nil && *in.Force})
}
