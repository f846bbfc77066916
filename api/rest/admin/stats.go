// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"net/http"
	"strings"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/shape"
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
	Ref    string `path:"id" doc:"the sandbox's id or key"`
	Follow *bool  `query:"follow" doc:"true: go on, every two seconds, by server-sent events stats (SandboxStats), the first of which alone has the hour; error (Problem) when the sandbox is deleted"`

	Processes *int `query:"processes" doc:"1 to 500: also what runs, at most so many, who uses most first. Nothing inside is asked"`
}

func (a *API) getStats(ctx context.Context, c *httpapi.Call, in *getStats) error {
	s, err := a.stats()
	if err != nil {
		return err
	}
	if in.Processes != nil && (*in.Processes < 1 || *in.Processes > meter.MaxProcesses) {
		return fault.InvalidField("processes", "%d is outside 1 to %d", *in.Processes, meter.MaxProcesses)
	}
	whole := func(ctx context.Context, one meter.Stats) (v1.SandboxStats, error) {
		out := statsOf(one)
		if in.Processes == nil {
			return out, nil
		}
		found, err := s.Processes(ctx, c.Caller, string(one.Sandbox.ID), *in.Processes)
		out.Processes = processesOf(found)
		return out, err
	}
	if in.Follow == nil || !*in.Follow {
		one, err := s.Stats(ctx, c.Caller, in.Ref)
		if err != nil {
			return err
		}
		out, err := whole(ctx, one)
		if err != nil {
			return err
		}
		return c.Answer(out)
	}
	return follow(ctx, c, func(ctx context.Context, send func(any) error) error {
		return s.Follow(ctx, c.Caller, in.Ref, func(one meter.Stats) error {
			out, err := whole(ctx, one)
			if err != nil {
				return err
			}
			return send(out)
		})
	})
}

func processesOf(found meter.Processes) *v1.StatsProcesses {
	out := &v1.StatsProcesses{Items: make([]v1.StatsProcess, 0, len(found.Items)), Total: found.Total}
	for _, p := range found.Items {
		out.Items = append(out.Items, v1.StatsProcess{
			PID: p.PID, ParentPID: p.Parent, Name: strings.ToValidUTF8(p.Name, "\ufffd"), State: p.State, CPUs: p.CPUs, CPUSeconds: p.CPU.Seconds(), AgeSeconds: p.Age.Seconds(), MemoryBytes: p.MemoryBytes, Threads: p.Threads,
		})
	}
	return out
}

// follow streams what run sends, until the client goes away.
func follow(ctx context.Context, c *httpapi.Call, run func(ctx context.Context, send func(any) error) error) error {
	if c.R.Method == http.MethodHead {
		c.W.Header().Set("Content-Type", "text/event-stream")
		c.W.WriteHeader(http.StatusOK)
		return nil
	}
	ctx, done := c.Bound(ctx)
	defer done()
	s := c.Events()
	defer s.Close()
	err := run(ctx, func(v any) error { return s.Send(v1.StatsEvent, 0, v) })
	return s.Fail(httpapi.Cause(ctx, err))
}

type listStats struct {
	AllProjects *bool `query:"all_projects" doc:"those of all projects, for the server's own administrator's token"`
	History     *bool `query:"history" doc:"with the last hour of each, of all together and of the host; the default is false"`
	Follow      *bool `query:"follow" doc:"true: go on, every two seconds, by server-sent events stats (StatsList), of which the first alone has hours"`
}

// statsCost is about how much memory one sandbox takes in an event.
const statsCost = 1 << 10

func (a *API) listStats(ctx context.Context, c *httpapi.Call, in *listStats) error {
	s, err := a.stats()
	if err != nil {
		return err
	}
	all, hours := in.AllProjects != nil && *in.AllProjects, in.History != nil && *in.History
	if in.Follow == nil || !*in.Follow {
		r, err := s.All(ctx, c.Caller, all)
		if err != nil {
			return err
		}
		return c.Answer(reportOf(r, hours))
	}
	return follow(ctx, c, func(ctx context.Context, send func(any) error) error {
		var reserved int64
		return s.FollowAll(ctx, c.Caller, all, func(r meter.Report) error {
			if size := int64(len(r.Items)) * statsCost; size > max(httpapi.FreeAnswer, reserved) {
				if err := c.Reserve(ctx, size-reserved); err != nil {
					return err
				}
				reserved = size
			}
			return send(reportOf(r, hours))
		})
	})
}

func reportOf(r meter.Report, hours bool) v1.StatsList {
	out := v1.StatsList{Items: make([]v1.SandboxStats, 0, len(r.Items)), History: []v1.StatsSample{}}
	for _, one := range r.Items {
		if !hours {
			one.History = nil
		}
		out.Items = append(out.Items, statsOf(one))
	}
	sum := sampleOf(r.Sum.Sample)
	out.Total = v1.StatsTotal{Sandboxes: r.Sum.Sandboxes, CPUs: sum.CPUs, MemoryBytes: sum.MemoryBytes, DiskBytes: sum.DiskBytes, Tasks: sum.Tasks, NetworkInRate: sum.NetworkInRate, NetworkOutRate: sum.NetworkOutRate}
	if h := r.Host; h != nil {
		out.Host = hostOf(h, hours)
	}
	if hours {
		out.History = samplesOf(r.History)
	}
	return out
}

func hostOf(h *meter.Host, hours bool) *v1.HostStats {
	out := &v1.HostStats{CPULimit: h.CPUs, MemoryLimit: h.MemorySize, DiskLimit: h.DiskSize, TaskLimit: h.TaskLimit, Now: sampleOf(h.Now), History: []v1.StatsSample{}}
	if hours {
		out.History = samplesOf(h.History)
	}
	return out
}

func samplesOf(all []meter.Sample) []v1.StatsSample {
	out := make([]v1.StatsSample, 0, len(all))
	for _, one := range all {
		out = append(out, sampleOf(one))
	}
	return out
}

func statsOf(s meter.Stats) v1.SandboxStats {
	b := s.Sandbox
	out := v1.SandboxStats{
		ID: string(b.ID), Key: shape.TextOrNull(b.Key), Project: b.Project, Status: string(b.State),
		CPULimit: b.Limits.CPU, MemoryLimit: int64(b.Limits.MemoryMB) << 20, DiskLimit: int64(b.Limits.DiskMB) << 20, TaskLimit: b.Limits.Pids,
		History: samplesOf(s.History),
	}
	if s.Now != nil {
		out.Now = new(sampleOf(*s.Now))
		out.Now.CPUSeconds = new(s.Now.CPU.Seconds())
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
	if n := s.Network; n.InRate >= 0 && n.OutRate >= 0 {
		out.NetworkInRate, out.NetworkOutRate = &n.InRate, &n.OutRate
	}
	out.NetworkInBytes, out.NetworkOutBytes = counted(s.Network.In), counted(s.Network.Out)
	return out
}

// counted is null for what the host does not count.
func counted(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}
