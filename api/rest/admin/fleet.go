// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"slices"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/query"
	"sandpit.dev/api/rest/shape"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/engine/fleet"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// fleet returns the sandboxes of all projects, for a caller who may see them: others learn nothing of the server's.
func (a *API) fleet(c *httpapi.Call) (service.Fleet, error) {
	if err := c.Caller.Require(access.ServerAdmin); err != nil {
		return nil, err
	}
	if a.Fleet == nil {
		return nil, fault.New(fault.Unsupported, "this server lists no sandboxes of all projects")
	}
	return a.Fleet, nil
}

type listAllSandboxes struct {
	Project       *string           `query:"project" doc:"only sandboxes of this project"`
	UserID        *string           `query:"user_id" doc:"the same as project"`
	Status        []string          `query:"status" doc:"only these states, separated by commas"`
	ExcludeStatus []string          `query:"exclude_status" doc:"none of these states, separated by commas"`
	Image         *string           `query:"image" doc:"a part of the image's name"`
	Search        *string           `query:"search" doc:"a part of the id, key or image, letter case ignored"`
	Metadata      map[string]string `query:"metadata.*" doc:"only sandboxes with this label: metadata.NAME=VALUE, once per label"`
	Limit         *int              `query:"limit" doc:"most rows of a page, 1 to 500; default 50"`
	PageSize      *int              `query:"page_size" doc:"the same as limit"`
	Cursor        *string           `query:"cursor" doc:"next_cursor of the page before"`
	Page          *int              `query:"page" doc:"the page's number from 1, instead of a cursor"`
	SortOrder     *string           `query:"sort_order" doc:"desc (the default) or asc"`
	query.Spans
}

// fleetPage is the page of a list of all projects that names none.
const fleetPage = 50

func (a *API) listAllSandboxes(ctx context.Context, c *httpapi.Call, in *listAllSandboxes) (v1.SandboxPage, error) {
	f, err := a.fleet(c)
	if err != nil {
		return v1.SandboxPage{}, err
	}
	var sp httpapi.Spellings
	q := everywhere(&sp, in.Project, in.UserID, in.Status, in.ExcludeStatus, in.Image, in.Search, in.Metadata)
	in.Spans.Read(&sp, &q)
	page := query.Page(&sp, &q, fleetPage, in.Limit, in.PageSize, in.Cursor, in.Page, in.SortOrder)
	if err := sp.Err(); err != nil {
		return v1.SandboxPage{}, err
	}
	got, err := f.List(ctx, c.Caller, q)
	if err != nil {
		return v1.SandboxPage{}, sp.Rename(err)
	}
	return shape.SandboxPage(got, page, q.Limit), nil
}

// everywhere reads a filter of sandboxes of all projects.
func everywhere(sp *httpapi.Spellings, project, user *string, status, exclude []string, image, search *string, metadata map[string]string) engine.SandboxesRequest {
	q := engine.SandboxesRequest{
		Project:   httpapi.Given(httpapi.Either(sp, "project", project, "user_id", user)),
		ImagePart: httpapi.Given(image), Search: httpapi.Given(search), Metadata: metadata,
	}
	if q.Project != "" {
		if err := access.CheckProject("project", q.Project); err != nil {
			sp.Add(sp.Name("project"), "%s", fault.As(err).Fields[0].Message)
		}
	}
	q.States = query.States(sp, status, nil)
	var not httpapi.Spellings
	excluded := query.States(&not, exclude, nil)
	if not.Err() != nil {
		sp.Add("exclude_status", "%q has one that is not valid; the states are %s", sandbox.Clip(strings.Join(exclude, ","), 80), strings.Join(shape.LiveStates(), ", "))
		return q
	}
	if len(excluded) == 0 {
		return q
	}
	if len(q.States) == 0 {
		for _, s := range shape.LiveStates() {
			q.States = append(q.States, sandbox.State(s))
		}
	}
	q.States = slices.DeleteFunc(q.States, func(s sandbox.State) bool { return slices.Contains(excluded, s) })
	if len(q.States) == 0 {
		sp.Add("exclude_status", "leaves no state")
	}
	return q
}

type bulkSandboxes struct{ Body v1.BulkSandboxes }

func (a *API) bulkStop(ctx context.Context, c *httpapi.Call, in *bulkSandboxes) (v1.BulkResult, error) {
	f, err := a.fleet(c)
	if err != nil {
		return v1.BulkResult{}, err
	}
	return bulk(ctx, c, &in.Body, f.Stop)
}

func (a *API) bulkDestroy(ctx context.Context, c *httpapi.Call, in *bulkSandboxes) (v1.BulkResult, error) {
	f, err := a.fleet(c)
	if err != nil {
		return v1.BulkResult{}, err
	}
	return bulk(ctx, c, &in.Body, f.Delete)
}

func bulk(ctx context.Context, c *httpapi.Call, b *v1.BulkSandboxes, do func(context.Context, access.Caller, fleet.Selection) (fleet.Result, error)) (v1.BulkResult, error) {
	var sp httpapi.Spellings
	s := fleet.Selection{DryRun: b.DryRun}
	filtered := b.Project != nil || b.UserID != nil || len(b.Status)+len(b.ExcludeStatus)+len(b.Metadata) > 0 || httpapi.Given(b.Image) != "" || httpapi.Given(b.Search) != ""
	switch {
	case len(b.SandboxIDs) > 0 && (filtered || b.All):
		sp.Add("sandbox_ids", "and a filter cannot both be given")
	case len(b.SandboxIDs) > 0:
		for _, id := range b.SandboxIDs {
			if !sandbox.ValidID(id) {
				sp.Add("sandbox_ids", "%q is not a sandbox's id", sandbox.Clip(id, 40))
				break
			}
			s.IDs = append(s.IDs, sandbox.ID(id))
		}
	case !filtered && !b.All:
		sp.Add("sandbox_ids", "is empty; name sandboxes, give a filter, or say all for those of all projects")
	default:
		q := everywhere(&sp, b.Project, b.UserID, b.Status, b.ExcludeStatus, b.Image, b.Search, b.Metadata)
		s.Filter = &q
	}
	if err := sp.Err(); err != nil {
		return v1.BulkResult{}, err
	}
	r, err := do(ctx, c.Caller, s)
	if err != nil {
		return v1.BulkResult{}, sp.Rename(err)
	}
	out := v1.BulkResult{Stopped: idTexts(r.Stopped), Destroyed: idTexts(r.Deleted), Skipped: idTexts(r.Skipped), Errors: []v1.BulkError{}, DryRun: b.DryRun}
	for _, e := range r.Failed {
		fe := fault.As(e.Err)
		out.Errors = append(out.Errors, v1.BulkError{SandboxID: string(e.ID), Code: string(fe.Code), Error: fe.Message})
	}
	slices.SortFunc(out.Errors, func(x, y v1.BulkError) int { return strings.Compare(x.SandboxID, y.SandboxID) })
	return out, nil
}

// idTexts returns ids, sorted.
func idTexts(ids []sandbox.ID) []string {
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		out = append(out, string(id))
	}
	slices.Sort(out)
	return out
}
