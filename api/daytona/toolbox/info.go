// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"math"
	"strconv"
	"time"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// metrics answers with what a sandbox uses now. It does not count as a use of the sandbox.
func (a *API) metrics(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Metrics, error) {
	if a.Stats == nil {
		return wire.Metrics{}, fault.New(fault.Unsupported, "this server does not count what sandboxes use")
	}
	s, err := a.Stats.Stats(ctx, c.Caller, in.Ref)
	if err != nil {
		return wire.Metrics{}, err
	}
	l := s.Sandbox.Limits
	out := wire.Metrics{CPUCount: int(math.Ceil(l.CPU)), MemTotal: int64(l.MemoryMB) << 20, DiskTotal: int64(l.DiskMB) << 20, Timestamp: time.Now().UTC()}
	if u := s.Now; u != nil {
		out.Timestamp = u.At.UTC()
		if u.CPUs >= 0 && l.CPU > 0 {
			out.CPUUsedPct = new(100 * u.CPUs / l.CPU)
		}
		if u.MemoryBytes >= 0 {
			out.MemUsed = &u.MemoryBytes
		}
		if u.DiskBytes >= 0 {
			out.DiskUsed, out.DiskFree = &u.DiskBytes, new(max(0, out.DiskTotal-u.DiskBytes))
		}
	}
	return out, nil
}

func (a *API) ports(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Ports, error) {
	all, _, err := a.Ports.Ports(ctx, c.Caller, in.Ref)
	out := wire.Ports{Ports: make([]int, 0, len(all))}
	for _, p := range all {
		out.Ports = append(out.Ports, p.Port)
	}
	return out, err
}

type byPort struct {
	Ref  string `path:"id"`
	Port string `path:"port"`
}

func (a *API) portInUse(ctx context.Context, c *httpapi.Call, in *byPort) (wire.PortInUse, error) {
	n, err := strconv.Atoi(in.Port)
	if err != nil || n < 1 || n > 65535 {
		return wire.PortInUse{}, fault.InvalidField("port", "%q is outside 1 to 65535", sandbox.Clip(in.Port, 20))
	}
	all, _, err := a.Ports.Ports(ctx, c.Caller, in.Ref)
	out := wire.PortInUse{}
	for _, p := range all {
		out.IsInUse = out.IsInUse || p.Port == n
	}
	return out, err
}
