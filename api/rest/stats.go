// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"

	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/meter"
	"sandpit.dev/fault"
)

func (a *API) stats() (service.Stats, error) {
	if a.Stats == nil {
		return nil, fault.New(fault.Unsupported, "this server does not read what sandboxes use")
	}
	return a.Stats, nil
}

type getStats struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
}

func (a *API) getStats(ctx context.Context, c *call, in *getStats) (v1.SandboxStats, error) {
	s, err := a.stats()
	if err != nil {
		return v1.SandboxStats{}, err
	}
	one, err := s.Stats(ctx, c.Caller, in.Ref)
	if err != nil {
		return v1.SandboxStats{}, err
	}
	return statsOf(one), nil
}

type listStats struct {
	AllProjects *bool `query:"all_projects" doc:"those of all projects, for the server's own administrator's token"`
	History     *bool `query:"history" doc:"with the last hour of each; the default is false"`
}

func (a *API) listStats(ctx context.Context, c *call, in *listStats) (v1.StatsList, error) {
	s, err := a.stats()
	if err != nil {
		return v1.StatsList{}, err
	}
	all, err := s.All(ctx, c.Caller, in.AllProjects != nil && *in.AllProjects)
	if err != nil {
		return v1.StatsList{}, err
	}
	out := v1.StatsList{Items: make([]v1.SandboxStats, 0, len(all))}
	for _, one := range all {
		if in.History == nil || !*in.History {
			one.History = nil
		}
		out.Items = append(out.Items, statsOf(one))
	}
	return out, nil
}

func statsOf(s meter.Stats) v1.SandboxStats {
	b := s.Sandbox
	out := v1.SandboxStats{
		ID: string(b.ID), Key: textOrNull(b.Key), Project: b.Project, Status: string(b.State),
		CPULimit: b.Limits.CPU, MemoryLimit: int64(b.Limits.MemoryMB) << 20, DiskLimit: int64(b.Limits.DiskMB) << 20, TaskLimit: b.Limits.Pids,
		History: make([]v1.StatsSample, 0, len(s.History)),
	}
	if s.Now != nil {
		out.Now = new(sampleOf(*s.Now))
		out.Now.CPUSeconds = new(s.Now.CPU.Seconds())
	}
	for _, one := range s.History {
		out.History = append(out.History, sampleOf(one))
	}
	return out
}

func sampleOf(s meter.Sample) v1.StatsSample {
	out := v1.StatsSample{
		Time: s.At.UTC(), MemoryBytes: counted(s.MemoryBytes), MemoryPeakBytes: counted(s.MemoryPeak), DiskBytes: counted(s.DiskBytes), Tasks: counted(s.Tasks),
	}
	if s.CPUs >= 0 {
		out.CPUs = &s.CPUs
	}
	return out
}

// counted is null for what the host does not count.
func counted(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}
