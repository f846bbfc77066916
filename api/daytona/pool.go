// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"math"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/daytonaterms"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine/images"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Pools belong to the server and serve all projects; only its administrator changes them. The id of a pool is the name of its image. A pool
// of size 0 does not exist.

func (a *API) poolOf(c *httpapi.Call, p *prewarm.PoolInfo) wire.Pool {
	return wire.Pool{
		ID: p.Name, OrganizationID: c.Caller.Project, Snapshot: p.Image, Target: a.target, Pool: p.Min, CurrentSize: p.Ready,
		CPU: ceil(p.Limits.CPU), Memory: ceil(float64(p.Limits.MemoryMB) / 1024), Disk: ceil(float64(p.Limits.DiskMB) / 1024),
		OSUser: daytonaterms.DefaultUser, Env: map[string]string{},
	}
}

// pools returns the pools of one image each.
func (a *API) pools(ctx context.Context, c *httpapi.Call) (all []prewarm.PoolInfo, err error) {
	if a.Keeper == nil {
		return nil, fault.New(fault.Unsupported, "this server has no pools")
	}
	list, err := a.Keeper.AllPools(ctx, c.Caller)
	for _, p := range list {
		if !p.Recent && p.Max > 0 {
			all = append(all, p)
		}
	}
	return all, err
}

func (a *API) listPools(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) ([]wire.Pool, error) {
	all, err := a.pools(ctx, c)
	out := make([]wire.Pool, len(all))
	for i := range all {
		out[i] = a.poolOf(c, &all[i])
	}
	return out, err
}

// pool returns the pool with an id.
func (a *API) pool(ctx context.Context, c *httpapi.Call, id string) (prewarm.PoolInfo, error) {
	all, err := a.pools(ctx, c)
	for _, p := range all {
		if p.Name == id {
			return p, nil
		}
	}
	if err == nil {
		err = fault.New(fault.NotFound, "there is no pool %q", sandbox.Clip(id, 80))
	}
	return prewarm.PoolInfo{}, err
}

// size returns the size of a pool that a request asks for.
func size(n *float64, least int) (int, error) {
	if n == nil {
		return 0, fault.InvalidField("pool", "is missing")
	}
	if *n != math.Trunc(*n) || !(*n >= float64(least) && *n <= prewarm.MaxPoolSize) {
		return 0, fault.InvalidField("pool", "%g is not a whole number from %d to %d", *n, least, prewarm.MaxPoolSize)
	}
	return int(*n), nil
}

// resizePool has a pool keep n ready.
func (a *API) resizePool(ctx context.Context, c *httpapi.Call, ch images.PoolChange, n int) (wire.Pool, error) {
	ch.Min, ch.Max = &n, &n
	image, all, err := a.Keeper.ChangePool(ctx, c.Caller, ch)
	if err != nil {
		return wire.Pool{}, err
	}
	for i := range all {
		if p := &all[i]; !p.Recent && (p.Name == ch.Pool || ch.Pool == "" && p.Name == image) {
			return a.poolOf(c, p), nil
		}
	}
	return wire.Pool{}, fault.New(fault.Internal, "the pool of %s is not there after its change", image)
}

type createPool struct {
	Body wire.CreatePool
}

func (a *API) createPool(ctx context.Context, c *httpapi.Call, in *createPool) (wire.Pool, error) {
	b := &in.Body
	n, err := size(b.Pool, 1)
	if err != nil {
		return wire.Pool{}, err
	}
	if t := given(b.Target); t != "" && t != a.target {
		e := fault.InvalidField("target", "the only region here is %s", a.target)
		e.Code = fault.Unsupported
		return wire.Pool{}, e
	}
	from, image := daytonaterms.Origin(b.Snapshot)
	switch {
	case b.Snapshot == "":
		return wire.Pool{}, fault.InvalidField("snapshot", "is missing")
	case from != "":
		e := fault.InvalidField("snapshot", "%q has a disk, and pools keep sandboxes of images", sandbox.Clip(b.Snapshot, 80))
		e.Code = fault.Unsupported
		return wire.Pool{}, e
	}
	all, err := a.pools(ctx, c)
	if err != nil {
		return wire.Pool{}, err
	}
	image, _, err = a.Keeper.Pools(ctx, c.Caller, image) // by its name
	if err != nil {
		return wire.Pool{}, err
	}
	for _, p := range all {
		if p.Name == image {
			return wire.Pool{}, fault.New(fault.Exists, "there is a pool of %s", image).WithRemedy("change its size")
		}
	}
	return a.resizePool(ctx, c, images.PoolChange{Image: image, Limits: bounded(defaults(), a.Server.Most())}, n)
}

type byPool struct {
	Pool string `path:"pool"`
}

type updatePool struct {
	byPool
	Body wire.UpdatePool
}

func (a *API) updatePool(ctx context.Context, c *httpapi.Call, in *updatePool) (wire.Pool, error) {
	n, err := size(in.Body.Pool, 0)
	if err != nil {
		return wire.Pool{}, err
	}
	p, err := a.pool(ctx, c, in.Pool)
	if err != nil {
		return wire.Pool{}, err
	}
	return a.resizePool(ctx, c, images.PoolChange{Image: p.Image, Pool: p.Name}, n)
}

func (a *API) deletePool(ctx context.Context, c *httpapi.Call, in *byPool) (httpapi.None, error) {
	p, err := a.pool(ctx, c, in.Pool)
	if err == nil {
		_, err = a.resizePool(ctx, c, images.PoolChange{Image: p.Image, Pool: p.Name}, 0)
	}
	return httpapi.None{}, err
}
