// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/project"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/admin"
	"sandpit.dev/api/rest/query"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/usage"
	"sandpit.dev/fault"
	"sandpit.dev/projects"
)

// serverProjects returns the projects for a caller who may see all: others learn nothing of the server's.
func (a *API) serverProjects(c *httpapi.Call) (service.Projects, error) {
	if err := c.Caller.Require(access.ServerAdmin); err != nil {
		return nil, err
	}
	return admin.Projects(a.Projects)
}

func (a *API) listUserQuotas(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (v1.UserQuotas, error) {
	s, err := a.serverProjects(c)
	if err != nil {
		return v1.UserQuotas{}, err
	}
	all, err := s.List(ctx, c.Caller)
	if err != nil {
		return v1.UserQuotas{}, err
	}
	out := v1.UserQuotas{Quotas: []v1.UserQuota{}, PlatformDefaults: userQuota(&projects.Status{Project: project.Project{Quotas: s.Defaults()}})}
	out.PlatformDefaults.IsCustom = false
	for i := range all {
		if q := userQuota(&all[i]); q.IsCustom {
			out.Quotas = append(out.Quotas, q)
		}
	}
	return out, nil
}

type ofUser struct {
	UserID string `path:"user_id" doc:"the project"`
}

func (a *API) getUserQuota(ctx context.Context, c *httpapi.Call, in *ofUser) (v1.UserQuota, error) {
	s, err := a.serverProjects(c)
	if err != nil {
		return v1.UserQuota{}, err
	}
	p, err := s.Get(ctx, c.Caller, in.UserID)
	if err != nil {
		return v1.UserQuota{}, err
	}
	return userQuota(&p), nil
}

type setUserQuota struct {
	ofUser
	Body v1.SetUserQuota
}

func (a *API) setUserQuota(ctx context.Context, c *httpapi.Call, in *setUserQuota) (v1.UserQuota, error) {
	s, err := a.serverProjects(c)
	if err != nil {
		return v1.UserQuota{}, err
	}
	to, theirs := make(map[string]float64), map[string]string{"quotas." + project.CPU.String(): "max_cpu_cores"}
	for _, f := range []struct {
		name  string
		of    project.Resource
		value *int64
	}{{"max_sandboxes", project.Sandboxes, in.Body.MaxSandboxes}, {"max_memory_mb", project.Memory, in.Body.MaxMemoryMB}, {"max_exec_per_day", project.Commands, in.Body.MaxExecPerDay}} {
		theirs["quotas."+f.of.String()] = f.name
		if f.value != nil {
			to[f.of.String()] = float64(*f.value)
		}
	}
	if in.Body.MaxCPUCores != nil {
		to[project.CPU.String()] = *in.Body.MaxCPUCores
	}
	p, err := s.Change(ctx, c.Caller, in.UserID, to)
	if err != nil {
		if e := fault.As(err); len(e.Fields) == 1 && theirs[e.Fields[0].Name] != "" {
			err = fault.InvalidField(theirs[e.Fields[0].Name], "%s", e.Fields[0].Message)
		}
		return v1.UserQuota{}, err
	}
	return userQuota(&p), nil
}

func userQuota(p *projects.Status) v1.UserQuota {
	q := v1.UserQuota{
		UserID: p.Name, MaxSandboxes: int64(p.Quotas[project.Sandboxes]), MaxMemoryMB: int64(p.Quotas[project.Memory]),
		MaxCPUCores: p.Quotas[project.CPU], MaxExecPerDay: int64(p.Quotas[project.Commands]), ActiveSandboxes: int64(p.Use[project.Running]),
	}
	q.IsCustom = q.MaxSandboxes != 0 || q.MaxMemoryMB != 0 || q.MaxCPUCores != 0 || q.MaxExecPerDay != 0
	return q
}

type usageSummary struct {
	Since *string `query:"since" doc:"only hours from the one of this time on (2026-01-31T12:00:00Z)"`
	Until *string `query:"until" doc:"only hours that begin before this time"`
}

func (a *API) usageSummary(ctx context.Context, c *httpapi.Call, in *usageSummary) (v1.UsageSummary, error) {
	s, err := a.serverProjects(c)
	if err != nil {
		return v1.UsageSummary{}, err
	}
	if a.Usage == nil {
		return v1.UsageSummary{}, fault.New(fault.Unsupported, "this server does not add up what is used")
	}
	var sp httpapi.Spellings
	r := usage.Request{AllProjects: true, By: []string{"project"}, Since: query.Instant(&sp, "since", in.Since), Until: query.Instant(&sp, "until", in.Until)}
	if err := sp.Err(); err != nil {
		return v1.UsageSummary{}, err
	}
	rows, err := a.Usage.Report(ctx, c.Caller, r)
	if err != nil {
		return v1.UsageSummary{}, err
	}
	all, err := s.List(ctx, c.Caller)
	if err != nil {
		return v1.UsageSummary{}, err
	}
	there := make(map[string]int64, len(all))
	for i := range all {
		there[all[i].Name] = int64(all[i].Use[project.Sandboxes])
	}
	out := v1.UsageSummary{Users: make([]v1.UserUsage, 0, len(rows))}
	if !r.Since.IsZero() {
		out.Since = new(r.Since.UTC().Truncate(time.Hour))
	}
	if !r.Until.IsZero() {
		out.Until = new(r.Until.UTC())
	}
	for _, u := range rows {
		out.Users = append(out.Users, v1.UserUsage{
			UserID: u.Project, ExecCount: u.Commands, ExecTotalMS: u.ExecTime.Milliseconds(), BytesUploaded: u.Uploaded, BytesDownloaded: u.Downloaded, SandboxCount: there[u.Project],
		})
	}
	return out, nil
}
