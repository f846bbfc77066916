// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/url"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

type createVolume struct{ Body v1.CreateVolume }

func (a *API) createVolume(ctx context.Context, c *idempotency.Call, in *createVolume) (v1.Volume, error) {
	if in.Body.Name == "" {
		return v1.Volume{}, fault.InvalidField("name", "is missing; a volume has a name of 1 to %d characters", sandbox.MaxKey)
	}
	r := volume.Request{Name: in.Body.Name, Runtime: httpapi.Given(in.Body.Runtime)}
	if in.Body.SizeMB != nil {
		r.SizeMB = *in.Body.SizeMB
	}
	if in.Body.LifetimeSeconds != nil {
		var err error
		if r.Lifetime, err = volume.Lifetime(*in.Body.LifetimeSeconds); err != nil {
			return v1.Volume{}, err
		}
	}
	v, made, err := idempotency.Again(c, keyed.Volume, func(id string) (volume.Info, error) { return a.Volumes.Volume(ctx, c.Caller, id) }, nil)
	if !made && err == nil {
		v, err = a.Volumes.CreateVolume(ctx, c.Caller, r)
	}
	if err != nil {
		return v1.Volume{}, err
	}
	c.W.Header().Set("Location", "/v1/volumes/"+url.PathEscape(v.Name))
	return volumeOf(&v), nil
}

func (a *API) listVolumes(ctx context.Context, c *idempotency.Call, _ *httpapi.NoInput) (v1.VolumeList, error) {
	got, err := a.Volumes.Volumes(ctx, c.Caller)
	if err != nil {
		return v1.VolumeList{}, err
	}
	out := v1.VolumeList{Items: make([]v1.Volume, 0, len(got))}
	for i := range got {
		out.Items = append(out.Items, volumeOf(&got[i]))
	}
	return out, nil
}

type byVolume struct {
	Volume string `path:"volume" doc:"the volume's name or id"`
}

func (a *API) getVolume(ctx context.Context, c *idempotency.Call, in *byVolume) (v1.Volume, error) {
	v, err := a.Volumes.Volume(ctx, c.Caller, in.Volume)
	if err != nil {
		return v1.Volume{}, err
	}
	return volumeOf(&v), nil
}

type updateVolume struct {
	byVolume
	Body v1.UpdateVolume
}

func (a *API) updateVolume(ctx context.Context, c *idempotency.Call, in *updateVolume) (v1.Volume, error) {
	var p volume.Patch
	if in.Body.LifetimeSeconds != nil {
		d, err := volume.Lifetime(*in.Body.LifetimeSeconds)
		if err != nil {
			return v1.Volume{}, err
		}
		p.Lifetime = &d
	}
	v, err := a.Volumes.UpdateVolume(ctx, c.Caller, in.Volume, p)
	if err != nil {
		return v1.Volume{}, err
	}
	return volumeOf(&v), nil
}

func (a *API) deleteVolume(ctx context.Context, c *idempotency.Call, in *byVolume) (httpapi.None, error) {
	return httpapi.None{}, a.Volumes.DeleteVolume(ctx, c.Caller, in.Volume)
}

func volumeOf(v *volume.Info) v1.Volume {
	out := v1.Volume{
		ID: string(v.ID), Name: v.Name, Project: v.Project, Runtime: v.Runtime, Status: string(v.State), SizeMB: v.SizeMB,
		Users: make([]string, 0, len(v.Users)), CreatedAt: v.CreatedAt.UTC(), CreatedBy: v.CreatedBy, ExpiresAt: shape.TimeOrNull(v.ExpiresAt),
	}
	if d := v.Lifetime(); d > 0 {
		out.Lifetime = new(int64(d / time.Second))
	}
	if v.UsedBytes >= 0 {
		out.UsedBytes = &v.UsedBytes
	}
	for _, id := range v.Users {
		out.Users = append(out.Users, string(id))
	}
	return out
}

// mounts are the volumes that a request asks for; nil where it says nothing.
func mounts(sp *httpapi.Spellings, asked []v1.MountVolume) []volume.Mount {
	if asked == nil {
		return nil
	}
	sp.Wrote("mounts", "volumes")
	sp.Wrote("mounts.sub", "sub_path")
	out := make([]volume.Mount, 0, len(asked))
	for _, m := range asked {
		out = append(out, volume.Mount{Volume: m.Volume, Path: m.Path, Sub: httpapi.Given(m.SubPath), ReadOnly: m.ReadOnly})
	}
	return out
}
