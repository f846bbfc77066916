// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"
	"encoding/json"
	"math"
	"time"

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
	Days     *int    `json:"max_lifetime_days"`   // of a lifetime of whole days; else null
	Hours    *int    `json:"max_lifetime_hours"`  // of another one, rounded up; else null
	Expires  *string `json:"expires_at"`
}

func (a *API) volumeOf(v *volume.Info) volumeShape {
	out := volumeShape{ID: string(v.ID), Name: v.Name, SizeMB: v.SizeMB, Status: "available", Region: a.region}
	if len(v.Users) > 0 {
		out.Status, out.Attached = "attached", new(string(v.Users[0]))
	}
	if d := v.Lifetime(); d > 0 {
		out.Expires = new(v.ExpiresAt.UTC().Format(time.RFC3339Nano))
		if d%day == 0 {
			out.Days = new(int(d / day))
		} else {
			out.Hours = new(int((d + time.Hour - 1) / time.Hour))
		}
	}
	return out
}

// Bounds of lifetimes of volumes.
const (
	day           = 24 * time.Hour
	mostLifeDays  = int(sandbox.MaxVolumeLifetime / day)
	mostLifeHours = 24
)

// lifetimes are fields that ask for the end of a volume. One that is null is told from one that is not there.
type lifetimes struct {
	Days  json.RawMessage `json:"max_lifetime_days"`
	Hours json.RawMessage `json:"max_lifetime_hours"`
}

// read returns the lifetime that is asked for, zero for none; nil: nothing is said of it.
func (l *lifetimes) read() (*time.Duration, error) {
	days, err := units("max_lifetime_days", l.Days, mostLifeDays)
	if err != nil {
		return nil, err
	}
	hours, err := units("max_lifetime_hours", l.Hours, mostLifeHours)
	switch {
	case err != nil:
		return nil, err
	case days > 0 && hours > 0:
		return nil, fault.InvalidField("max_lifetime_hours", "is %d, and max_lifetime_days is %d; give one of them", hours, days)
	case l.Days == nil && l.Hours == nil:
		return nil, nil
	}
	return new(time.Duration(days)*day + time.Duration(hours)*time.Hour), nil
}

// units reads a number of units, 1 to most; 0 where it is null, or not there.
func units(field string, raw json.RawMessage, most int) (int, error) {
	var n *int
	if raw == nil {
		return 0, nil
	}
	if err := json.Unmarshal(raw, &n); err != nil || n != nil && (*n < 1 || *n > most) {
		return 0, fault.InvalidField(field, "%s is no whole number from 1 to %d", sandbox.Clip(string(raw), 40), most).WithRemedy("give one, or null for a volume that stays until it is deleted")
	}
	return given(n), nil
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
	life, err := b.read()
	if err != nil {
		return volumeShape{}, err
	}
	size := float64(orkestrterms.DefaultVolumeMB) / 1024
	if b.SizeGB != nil {
		size = *b.SizeGB
	}
	if !(size >= leastVolumeGB && size <= mostVolumeGB) {
		return volumeShape{}, fault.InvalidField("size_gb", "%v is outside %v to %v", size, leastVolumeGB, mostVolumeGB)
	}
	v, err := a.Volumes.CreateVolume(ctx, c.Caller, volume.Request{Name: b.Name, SizeMB: int(math.Ceil(size * 1024)), Lifetime: given(life)})
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

// updateVolume sets a lifetime, which is counted from the volume's creation, or takes it away.
func (a *API) updateVolume(ctx context.Context, c *httpapi.Call, in *updateVolume) (volumeShape, error) {
	life, err := in.Body.read()
	if err != nil {
		return volumeShape{}, err
	}
	if life == nil {
		return volumeShape{}, fault.InvalidField("max_lifetime_days", "is missing, and so is max_lifetime_hours; give one of them")
	}
	v, err := a.Volumes.UpdateVolume(ctx, c.Caller, in.Volume, volume.Patch{Lifetime: life})
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
