// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"
	"math"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/orkestrterms"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of a volume's size, in GiB.
const (
	leastVolumeGB = 0.25
	mostVolumeGB  = float64(sandbox.MaxDiskMB) / 1024
)

type volumeShape struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	SizeMB   int     `json:"size_mb"` // 0: no limit of its own
	Status   string  `json:"status"`
	Region   string  `json:"region"`
	Attached *string `json:"attached_sandbox_id"` // the first of those that have it
	Days     *int    `json:"max_lifetime_days"`   // always null, as the next two: volumes stay until they are deleted
	Hours    *int    `json:"max_lifetime_hours"`
	Expires  *string `json:"expires_at"`
}

func (a *API) volumeOf(v *volume.Info) volumeShape {
	out := volumeShape{ID: string(v.ID), Name: v.Name, SizeMB: v.SizeMB, Status: "available", Region: a.region}
	if len(v.Users) > 0 {
		out.Status, out.Attached = "attached", new(string(v.Users[0]))
	}
	return out
}

// lifetimes are fields that ask for the end of a volume.
type lifetimes struct {
	Days  *int `json:"max_lifetime_days"`
	Hours *int `json:"max_lifetime_hours"`
}

func (l *lifetimes) check() error {
	field := "max_lifetime_days"
	switch {
	case l.Days == nil && l.Hours == nil:
		return nil
	case l.Days == nil:
		field = "max_lifetime_hours"
	}
	return unsupported(field, "is not here: a volume stays until it is deleted").WithRemedy("leave it out, and delete the volume by Volume.delete")
}

type createVolume struct {
	Body struct {
		Name   string   `json:"name"`
		SizeGB *float64 `json:"size_gb"`
		Region *string  `json:"region"`
		lifetimes
	}
}

func (a *API) createVolume(ctx context.Context, c *httpapi.Call, in *createVolume) (volumeShape, error) {
	b := &in.Body
	if err := a.here(b.Region); err != nil {
		return volumeShape{}, err
	}
	if err := b.check(); err != nil {
		return volumeShape{}, err
	}
	size := float64(orkestrterms.DefaultVolumeMB) / 1024
	if b.SizeGB != nil {
		size = *b.SizeGB
	}
	if !(size >= leastVolumeGB && size <= mostVolumeGB) {
		return volumeShape{}, fault.InvalidField("size_gb", "%v is outside %v to %v", size, leastVolumeGB, mostVolumeGB)
	}
	v, err := a.Volumes.CreateVolume(ctx, c.Caller, volume.Request{Name: b.Name, SizeMB: int(math.Ceil(size * 1024))})
	if err != nil {
		return volumeShape{}, err
	}
	return a.volumeOf(&v), nil
}

type volumeList struct {
	Volumes []volumeShape `json:"volumes"`
}

func (a *API) listVolumes(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (volumeList, error) {
	all, err := a.Volumes.Volumes(ctx, c.Caller)
	out := volumeList{Volumes: make([]volumeShape, len(all))}
	for i := range all {
		out.Volumes[i] = a.volumeOf(&all[i])
	}
	return out, err
}

type updateVolume struct {
	Volume string `path:"volume"`
	Body   lifetimes
}

// updateVolume takes a lifetime away, which no volume has.
func (a *API) updateVolume(ctx context.Context, c *httpapi.Call, in *updateVolume) (volumeShape, error) {
	v, err := a.Volumes.Volume(ctx, c.Caller, in.Volume)
	if err == nil {
		err = in.Body.check()
	}
	if err != nil {
		return volumeShape{}, err
	}
	return a.volumeOf(&v), nil
}

type byVolume struct {
	Volume string `path:"volume"`
}

type moveVolume struct {
	byVolume
	Body struct {
		Region *string `json:"region"`
	}
}

// moveVolume moves a volume to where it is.
func (a *API) moveVolume(ctx context.Context, c *httpapi.Call, in *moveVolume) (volumeShape, error) {
	v, err := a.Volumes.Volume(ctx, c.Caller, in.Volume)
	if err == nil {
		err = a.here(in.Body.Region)
	}
	if err != nil {
		return volumeShape{}, err
	}
	return a.volumeOf(&v), nil
}

func (a *API) deleteVolume(ctx context.Context, c *httpapi.Call, in *byVolume) (httpapi.None, error) {
	ctx, done := c.Bound(ctx)
	defer done()
	return httpapi.None{}, httpapi.Cause(ctx, a.Volumes.DeleteVolume(ctx, c.Caller, in.Volume))
}

// noWebhooks refuses webhooks, whose deliveries have a form and a signature of the SDK's own.
func (a *API) noWebhooks(context.Context, *httpapi.Call, *httpapi.NoInput) (httpapi.None, error) {
	return httpapi.None{}, fault.New(fault.Unsupported, "webhooks in Orkestr's form are not here").WithRemedy("make them by POST /v1/webhooks, which signs as docs/webhooks.md says")
}
