// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"time"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/overview"
	"sandpit.dev/engine/recent"
	"sandpit.dev/fault"
)

type getOverview struct {
	AllProjects *bool `query:"all_projects" doc:"of all projects, for the server's own administrator's token"`
}

func (a *API) getOverview(ctx context.Context, c *httpapi.Call, in *getOverview) (v1.Overview, error) {
	if a.Overview == nil {
		return v1.Overview{}, fault.New(fault.Unsupported, "this server does not count what happens")
	}
	o, err := a.Overview.Overview(ctx, c.Caller, in.AllProjects != nil && *in.AllProjects)
	if err != nil {
		return v1.Overview{}, err
	}
	return overviewOf(o), nil
}

func overviewOf(o overview.Overview) v1.Overview {
	out := v1.Overview{Time: o.At.UTC(), StartedAt: o.Started.UTC(), Sandboxes: make(map[string]int), Stores: []v1.StoreStats{}, Hour: hourOf(o.Hour, o.Counted)}
	if o.Project != "" {
		out.Project = &o.Project
	}
	for state, n := range o.States {
		out.Sandboxes[string(state)] = n
	}
	if u := o.Use; u != nil {
		sum := sampleOf(u.Sample)
		out.Use = &v1.OverviewUse{Time: sum.Time, StatsTotal: v1.StatsTotal{Sandboxes: u.Sandboxes, CPUs: sum.CPUs, MemoryBytes: sum.MemoryBytes, DiskBytes: sum.DiskBytes, Tasks: sum.Tasks, NetworkInRate: sum.NetworkInRate, NetworkOutRate: sum.NetworkOutRate}}
	}
	p := o.Operator
	if p == nil {
		return out
	}
	if p.Host != nil {
		out.Host = hostOf(p.Host, true)
	}
	if f := p.Files; f != nil {
		out.OpenFiles = &v1.OpenFiles{Server: f.Server, ServerLimit: f.ServerLimit, Host: f.Host, HostLimit: f.HostLimit}
	}
	for _, d := range p.Stores {
		out.Stores = append(out.Stores, v1.StoreStats{
			Runtime: d.Runtime, SizeBytes: d.SizeBytes, FreeBytes: d.FreeBytes, RoomBytes: d.RoomBytes, HostSizeBytes: d.HostSizeBytes, HostFreeBytes: d.HostFreeBytes, Full: why(d.Full), Failed: why(d.Failed),
		})
	}
	out.RecordsFull = why(p.Records)
	return out
}

// why returns an error's words for callers; nil: there is none.
func why(err error) *string {
	if err == nil {
		return nil
	}
	return &fault.As(err).Message
}

func hourOf(r recent.Report, counted bool) v1.Hour {
	h := v1.Hour{
		Since: r.Since, Counted: counted, Creates: r.Creates, Commands: r.Commands, Refused: r.Refused, Failures: []v1.Failures{}, Minutes: []v1.Minute{},
		CreateMS: percentilesOf(r.Times[recent.Create]), ExecMS: percentilesOf(r.Times[recent.Command]),
	}
	for _, f := range r.Failures {
		h.Failures = append(h.Failures, v1.Failures{Of: f.Kind.String(), Cause: f.Cause, Count: f.Count})
	}
	for _, m := range r.Minutes {
		h.Minutes = append(h.Minutes, v1.Minute{
			Time: m.At, Creates: m.Creates, Commands: m.Commands, Failures: m.Failures, Refused: m.Refused,
			CreateMS: percentilesOf(m.Times[recent.Create]), ExecMS: percentilesOf(m.Times[recent.Command]),
		})
	}
	return h
}

func percentilesOf(t recent.Times) v1.Percentiles {
	p := v1.Percentiles{Count: t.Count}
	if t.Count > 0 {
		p.P50, p.P95 = new(millis(t.P50)), new(millis(t.P95))
	}
	return p
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
