// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func (a *API) getInfo(ctx context.Context, c *idempotency.Call, _ *httpapi.NoInput) (v1.Info, error) {
	i, err := a.Server.Info(ctx, c.Caller)
	if err != nil {
		return v1.Info{}, err
	}
	d := i.Defaults
	out := v1.Info{
		Version: i.Version, StartedAt: i.Since.UTC(), Runtime: i.Default,
		Runtimes: make([]v1.Runtime, 0, len(i.Runtimes)), Sandboxes: shape.Counts(i.Counts), Pools: make([]v1.Pool, 0, len(i.Pools)),
		Defaults: v1.Defaults{
			CPUCores: d.Limits.CPU, MemoryMB: d.Limits.MemoryMB, DiskMB: d.Limits.DiskMB, Pids: d.Limits.Pids,
			IdleTimeoutSeconds: int64(d.IdleTimeout / time.Second), RetentionSeconds: int64(d.Retention / time.Second),
			CommandTimeoutSeconds: int64(d.CommandTimeout / time.Second), MaxCommandTimeoutSeconds: int64(d.MaxCommandTimeout / time.Second),
			RootAllowed: !d.ForbidRoot,
		},
		Max: v1.Max{CPUCores: d.Most.CPU, MemoryMB: d.Most.MemoryMB, DiskMB: d.Most.DiskMB, Pids: d.Most.Pids},
	}
	for _, p := range i.Pools {
		out.Pools = append(out.Pools, poolOf(p))
	}
	for _, r := range i.Runtimes {
		rt := v1.Runtime{Name: r.Name, Capabilities: make(map[string]v1.Capability)}
		if r.Err != nil {
			rt.Error = fault.As(r.Err).Message
		}
		for name, f := range r.Features {
			c := v1.Capability{Supported: f.Supported}
			if f.Why != nil {
				e := fault.As(f.Why)
				c.Reason, c.Remedy = e.Message, e.Remedy
			}
			rt.Capabilities[name] = c
		}
		out.Runtimes = append(out.Runtimes, rt)
	}
	return out, nil
}

func (a *API) getLimits(ctx context.Context, c *idempotency.Call, _ *httpapi.NoInput) (v1.SandboxLimits, error) {
	if err := c.Caller.Require(access.SandboxesRead); err != nil {
		return v1.SandboxLimits{}, err
	}
	out := v1.SandboxLimits{
		Sizes: a.sizeList(), Bounds: requestBounds(a.Server.Most()), Networks: a.networks(), Presets: a.Networks.PresetNames(), Default: shape.Policy(a.Networks.DefaultNetwork()), Regions: []string{},
	}
	if a.Projects != nil {
		p, err := a.Projects.Limits(ctx, c.Caller)
		if err != nil {
			return v1.SandboxLimits{}, err
		}
		out.Project = new(shape.Project(&p))
	}
	return out, nil
}

// sizeList is what the field size stands for.
func (a *API) sizeList() []v1.Size {
	var out []v1.Size
	for _, s := range a.SizeTable() {
		out = append(out, v1.Size{Name: s.Name, CPUCores: s.CPU, MemoryMB: s.MemoryMB})
	}
	return out
}

// requestBounds are the bounds of the numbers that a sandbox is asked for with.
func requestBounds(limits sandbox.Limits) map[string]v1.Bound {
	most := sandbox.MaxClock.Seconds()
	return map[string]v1.Bound{
		"cpu_cores":             {Min: sandbox.MinCPU, Max: limits.CPU, Unit: "cores"},
		"memory_mb":             {Min: sandbox.MinMemoryMB, Max: float64(limits.MemoryMB), Unit: "MiB"},
		"disk_mb":               {Min: sandbox.MinDiskMB, Max: float64(limits.DiskMB), Unit: "MiB"},
		"pids":                  {Min: sandbox.MinPids, Max: float64(limits.Pids), Unit: "processes"},
		"idle_timeout_seconds":  {Min: 0, Max: most, Unit: "seconds"},
		"retention_seconds":     {Min: 0, Max: most, Unit: "seconds"},
		"archive_after_seconds": {Min: 0, Max: most, Unit: "seconds"},
		"ttl_seconds":           {Min: minTTL, Max: most, Unit: "seconds"},
	}
}

func poolOf(p prewarm.PoolInfo) v1.Pool {
	return v1.Pool{
		Name: p.Name, Image: p.Image, Runtime: p.Runtime,
		CPUCores: p.Limits.CPU, MemoryMB: p.Limits.MemoryMB, DiskMB: p.Limits.DiskMB, Pids: p.Limits.Pids,
		Min: p.Min, Max: p.Max, Target: p.Target, Ready: p.Ready, Making: p.Making, Hits: p.Hits, Misses: p.Misses,
	}
}
