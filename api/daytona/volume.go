// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func volumeOf(v *volume.Info) wire.Volume {
	return wire.Volume{ID: string(v.ID), Name: v.Name, OrganizationID: v.Project, State: string(v.State), CreatedAt: v.CreatedAt, UpdatedAt: v.CreatedAt}
}

type createVolume struct {
	Body wire.Name
}

func (a *API) createVolume(ctx context.Context, c *httpapi.Call, in *createVolume) (wire.Volume, error) {
	if given(in.Body.Name) == "" {
		return wire.Volume{}, fault.InvalidField("name", "is missing")
	}
	v, err := a.Volumes.CreateVolume(ctx, c.Caller, volume.Request{Name: *in.Body.Name})
	if err != nil {
		return wire.Volume{}, err
	}
	return volumeOf(&v), nil
}

func (a *API) listVolumes(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) ([]wire.Volume, error) {
	all, err := a.Volumes.Volumes(ctx, c.Caller)
	out := make([]wire.Volume, len(all))
	for i := range all {
		out[i] = volumeOf(&all[i])
	}
	return out, err
}

// getVolume returns a volume by its id or name.
func (a *API) getVolume(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Volume, error) {
	v, err := a.Volumes.Volume(ctx, c.Caller, in.Ref)
	if err != nil {
		return wire.Volume{}, err
	}
	return volumeOf(&v), nil
}

// volumeByName is getVolume whose error has the text by which clients before 0.148 decide to create the volume.
func (a *API) volumeByName(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Volume, error) {
	v, err := a.getVolume(ctx, c, in)
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.NotFound, "Volume with name %s not found", sandbox.Clip(in.Ref, 80)).WithRemedy("create it, or list the volumes to see which there are")
	}
	return v, err
}

func (a *API) deleteVolume(ctx context.Context, c *httpapi.Call, in *byRef) (httpapi.None, error) {
	return httpapi.None{}, a.Volumes.DeleteVolume(ctx, c.Caller, in.Ref)
}
