// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/query"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/usage"
	"sandpit.dev/fault"
)

type getUsage struct {
	Since   *string  `query:"since" doc:"only hours from the one of this time on (2026-01-31T12:00:00Z)"`
	Until   *string  `query:"until" doc:"only hours that begin before this time"`
	By      []string `query:"by" doc:"what rows are apart by, separated by commas: project, token, day or hour; the default is one row"`
	Project *string  `query:"project" doc:"of this project, or * for all, for the server's own administrator's token; the default is the caller's"`
	Token   *string  `query:"token" doc:"only of the token of this name"`
}

func (a *API) getUsage(ctx context.Context, c *httpapi.Call, in *getUsage) (v1.UsageReport, error) {
	if a.Usage == nil {
		return v1.UsageReport{}, fault.New(fault.Unsupported, "this server does not add up what is used")
	}
	var sp httpapi.Spellings
	r := usage.Request{Project: httpapi.Given(in.Project), Token: httpapi.Given(in.Token), Since: query.Instant(&sp, "since", in.Since), Until: query.Instant(&sp, "until", in.Until), By: in.By}
	if r.Project == "*" {
		r.Project, r.AllProjects = "", true
	} else if r.Project != "" {
		if err := access.CheckProject("project", r.Project); err != nil {
			sp.Add("project", "%s", fault.As(err).Fields[0].Message)
		}
	}
	if err := sp.Err(); err != nil {
		return v1.UsageReport{}, err
	}
	rows, err := a.Usage.Report(ctx, c.Caller, r)
	if err != nil {
		return v1.UsageReport{}, err
	}
	out := v1.UsageReport{By: append([]string{}, r.By...), Items: make([]v1.Usage, 0, len(rows))}
	if !r.Since.IsZero() {
		out.Since = new(r.Since.UTC().Truncate(time.Hour))
	}
	if !r.Until.IsZero() {
		out.Until = new(r.Until.UTC())
	}
	for _, u := range rows {
		one := v1.Usage{
			Commands: u.Commands, CommandSeconds: u.ExecTime.Seconds(), RunSeconds: u.RunTime.Seconds(), CPUSeconds: u.CPUSeconds,
			MemoryGiBSeconds: u.MemorySeconds, DiskGiBSeconds: u.DiskSeconds, BytesUploaded: u.Uploaded, BytesDownloaded: u.Downloaded,
		}
		for _, by := range r.By {
			switch by {
			case "project":
				one.Project = new(u.Project)
			case "token":
				one.Token = new(u.Token)
			default:
				one.Time = new(u.Time)
			}
		}
		out.Items = append(out.Items, one)
	}
	return out, nil
}
